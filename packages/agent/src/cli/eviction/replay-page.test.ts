import { policyDifferences, type ReplayedRound } from "@nodekeeper/api/replay";
import { describe, expect, it } from "vitest";
import { liveEvictionPolicy } from "../../assembly/testing/defaults.ts";
import type { Output } from "../output.ts";
import { replayPage, type ShownReplay } from "./replay.ts";

const plain: Output = { write() {}, isTerminal: false, columns: 120 };
const START = Date.parse("2026-03-01T12:00:00.000Z");
const pod = (name: string) => ({ uid: name, namespace: "shop", name });
const victim = (name: string) => ({ ...pod(name), plugin: "p", reason: "because", gracePeriodSeconds: null });

const round = (changes: Partial<ReplayedRound>): ReplayedRound => ({
  id: 7,
  at: START,
  before: [],
  after: [],
  notEvicted: [],
  added: [],
  dryRun: { missing: [], added: [] },
  graceChanged: [],
  refusals: {},
  taints: { missing: [], added: [] },
  unasked: [],
  otherOffer: [],
  ...changes,
});
const replay = (changes: Partial<ShownReplay>): ShownReplay => ({
  rounds: 12,
  differing: [],
  uncertain: 0,
  victimsBefore: 3,
  victimsAfter: 3,
  dryRunBefore: 0,
  dryRunAfter: 0,
  policy: [],
  ...changes,
});

describe("the page of replay", () => {
  it("states that nothing differs, or that there is nothing", () => {
    expect(replayPage(replay({}), START, plain)).toBe(
      "The policy is the same as in the last replayed round.\n\n12 rounds since 2026-03-01T12:00:00.000Z replayed: 3 victims recorded, 3 with this policy.\nNo round differs.\n",
    );
    expect(replayPage(replay({ uncertain: 2 }), undefined, plain)).toBe(
      "The policy is the same as in the last replayed round.\n\n12 rounds replayed: 3 victims recorded, 3 with this policy.\nNo round differs.\nNot known for 2 more rounds: a plugin would have been called, or called with other pods, and its answer is not recorded.\n",
    );
    expect(replayPage(replay({ rounds: 0 }), START, plain)).toBe(
      "No recorded round since 2026-03-01T12:00:00.000Z: nothing to replay.\n",
    );
  });

  it("shows all that differs, and what is not known", () => {
    const differing = [
      round({
        notEvicted: [{ ...pod("web"), why: "not a candidate: label example.com/keep" }],
        added: [{ ...pod("db"), why: "evicted at the request of p: because" }],
        graceChanged: [
          { ...pod("job"), before: 600, after: 60 },
          { ...pod("old"), before: null, after: 0 },
        ],
        refusals: { skipLabel: [0, 1], notLeastImportant: [2, 1] },
        taints: { missing: ["nodekeeper.dev/Memory:NoSchedule"], added: ["example.com/Memory:NoSchedule"] },
        unasked: ["disk"],
        otherOffer: ["memory"],
      }),
    ];
    const recorded = { ...liveEvictionPolicy, burst: 1 };
    const skip = { ...liveEvictionPolicy.skip, labelKeys: ["example.com/keep"] };
    const policy = policyDifferences(recorded, { ...liveEvictionPolicy, dryRunPlugins: ["*"], skip });
    expect(replayPage(replay({ differing, victimsAfter: 4, policy }), undefined, plain)).toBe(`\
The policy differs from the one in the last replayed round:
  burst      3 instead of 1
  dryRunPlugins ["*"] instead of []
  skip.labelKeys ["example.com/keep"] instead of []

12 rounds replayed: 3 victims recorded, 4 with this policy.
1 round differs. Each round starts from its recorded state: later effects of a difference are not simulated.

Round 7 at 2026-03-01T12:00:00.000Z
  - evicted  shop/web: not a candidate: label example.com/keep
  + evicted  shop/db: evicted at the request of p: because
  ~ grace    shop/job: 60 s instead of 600 s
  ~ grace    shop/old: 0 s instead of that of the pod spec
  ~ refused  protected by a label: 1 instead of 0
  ~ refused  ranked higher: 1 instead of 2
  - taint    nodekeeper.dev/Memory:NoSchedule
  + taint    example.com/Memory:NoSchedule
  ? unknown  GetTopEvictionPods of disk would have been called: its answer is not recorded
  ? unknown  memory would have been offered other pods: its answer might differ
`);
  });

  it("shows who would have been evicted without dry run", () => {
    const dryRun = {
      missing: [
        { ...pod("web"), why: "not a candidate: label example.com/keep" },
        { ...pod("db"), why: null },
      ],
      added: [pod("job")],
    };
    const counts = { victimsBefore: 0, victimsAfter: 0, dryRunBefore: 2, dryRunAfter: 1 };
    const page = replayPage(replay({ ...counts, differing: [round({ dryRun })] }), undefined, plain);
    expect(page.split("\n").slice(2)).toEqual([
      "12 rounds replayed: 0 victims recorded, 0 with this policy.",
      "In dry run, not evicted: 2 victims recorded, 1 with this policy.",
      expect.stringMatching(/^1 round differs\./),
      "",
      "Round 7 at 2026-03-01T12:00:00.000Z",
      "  - dry run  shop/web: would not have been evicted: not a candidate: label example.com/keep",
      "  - dry run  shop/db: would not have been evicted",
      "  + dry run  shop/job: would have been evicted; dry run",
      "",
    ]);
  });

  it("compares policies of other versions of the agent too", () => {
    const older = { burst: 3, limits: { perOwner: null } };
    const newer = { burst: 3, limits: { perOwner: null, perNode: 5 }, pace: "slow" };
    expect(policyDifferences(older as never, newer as never)).toEqual([
      { field: "limits.perNode", recorded: undefined, replayed: 5 },
      { field: "pace", recorded: undefined, replayed: "slow" },
    ]);
  });

  it("shows another order only where it alone differs", () => {
    const [web, db] = [victim("web"), victim("db")];
    const page = (changes: Partial<ReplayedRound>) =>
      replayPage(replay({ differing: [round(changes)] }), undefined, plain);
    expect(page({ before: [web, db], after: [db, web] })).toContain("  ~ order    shop/db, shop/web\n");
    expect(page({ before: [web], after: [db], notEvicted: [{ ...web, why: "x" }] })).not.toContain("~ order");
  });

  it("does nothing to the terminal that a plugin wants", () => {
    const nasty = "\u001b[2J\n\u009b";
    const differing = [round({ notEvicted: [{ ...pod(nasty), why: nasty }], unasked: [nasty] })];
    const text = replayPage(replay({ differing }), undefined, plain);
    // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what must not come out
    expect(text.replaceAll("\n", "")).not.toMatch(/[\u0000-\u001f\u007f-\u009f]/);
    expect(text.split("\n")).toHaveLength(9);
  });
});
