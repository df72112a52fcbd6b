import { describe, expect, it } from "vitest";
import { doneLines, type Facts, knownAt, nextLines, wrongLines } from "./answers.ts";
import type { Eviction } from "./group-evictions.ts";
import type { LastHour } from "./last-hour.ts";

const NOW = Date.parse("2026-11-21T21:00:00Z");
const UNTIL = NOW + 300_000;

type Node = NonNullable<Facts["live"]["node"]>;
type Budgets = NonNullable<Facts["live"]["eviction/budgets"]>;
type Threshold = Budgets["thresholds"][number];

const node: Node = {
  nodeName: "node-1",
  version: "0.1.0",
  startedAt: 0,
  health: { ok: true, checks: [{ name: "PluginsReady", kind: "ready", ok: true, message: "" }] },
  plugins: { registered: 1, failing: 0, refusing: 0 },
  refusedContent: 0,
  objects: { published: 0, pending: 0, writes: 0 },
  lifecycle: null,
  eviction: { mode: "live", dryRunPlugins: [], evicted: 0, conditions: 0 },
};
const use = { limit: null, used: 0, freeAt: null };
const budgets: Budgets = {
  at: NOW,
  burst: 3,
  windowMs: 600_000,
  node: use,
  namespaces: [],
  owners: [],
  paused: [],
  queued: [],
  limited: [],
  pending: [],
  thresholds: [],
};
const threshold: Threshold = {
  plugin: "memory-watch",
  scope: "memory",
  metType: "hard",
  thresholdValue: 0.8,
  observedValue: 0.93,
  operator: "greaterThan",
  gracePeriodSeconds: 0,
  since: NOW - 12_000,
  confirmed: true,
  held: null,
};
const pod = { uid: "u", namespace: "shop", name: "cart" };
const pending: Budgets["pending"][number] = {
  ...pod,
  ...{ plugin: "memory-watch", scope: "memory", kind: "forced", reason: "", since: NOW },
  ...{ stage: "terminating", sendingAt: NOW, acceptedAt: NOW, deadline: UNTIL },
};

function factsOf({
  evictions = [],
  isCut = false,
  gaps = [],
  ...live
}: Partial<Facts["live"]> & {
  evictions?: readonly Eviction[];
  isCut?: boolean;
  gaps?: LastHour["coverage"]["gaps"];
}): Facts {
  return {
    live: { node, connection: { state: "open" }, "eviction/budgets": budgets, ...live },
    evictions: { items: evictions, isCut, coverage: { oldest: 0, requests: 0, gaps } },
    now: NOW,
  };
}
const textsOf = (lines: readonly { text: string }[]) => lines.map(({ text }) => text);
const withThreshold = (changes: Partial<Threshold>) => ({
  "eviction/budgets": { ...budgets, thresholds: [{ ...threshold, ...changes }] },
});

it("what is known ends with the last message of an agent that is silent", () => {
  const { live } = factsOf({});
  expect(knownAt(live, NOW)).toBe(NOW);
  const lost = { ...live, connection: { state: "lost", at: NOW - 5, why: "" } } as const;
  expect([knownAt(lost, NOW), knownAt(lost, NOW - 6)]).toEqual([NOW - 5, NOW - 6]);
});

describe("is something wrong", () => {
  it.each<[string, Parameters<typeof factsOf>[0], string[]]>([
    ["nothing", {}, ["Nothing: all checks pass, and no threshold is met"]],
    ["the node is not known yet", { node: undefined }, []],
    ["thresholds are not known yet", { "eviction/budgets": undefined }, []],
    [
      "no round since the agent's start: thresholds are not known",
      { "eviction/budgets": { ...budgets, at: null } },
      ["Nothing: all checks pass"],
    ],
    ["eviction is off", { node: { ...node, eviction: null } }, ["Nothing: all checks pass"]],
    [
      "the agent is silent: that comes first",
      { connection: { state: "lost", at: NOW - 60_000, why: "" }, ...withThreshold({}) },
      [
        "The agent has been silent since 2026-11-21T20:59:00.000Z; what follows is from then",
        "Pressure (hard) for 12 s: memory 0.93 > threshold 0.8, by memory-watch",
      ],
    ],
    [
      "checks and plugins",
      {
        node: {
          ...node,
          plugins: { registered: 2, failing: 1, refusing: 1 },
          health: { ok: false, checks: [{ name: "Api", kind: "ready", ok: false, message: "" }] },
        },
      },
      ["1 health check (Api) fails", "1 plugin is not working", "Content of 1 plugin refused"],
    ],
    [
      "two plugins",
      { node: { ...node, plugins: { registered: 2, failing: 2, refusing: 0 } } },
      ["2 plugins are not working"],
    ],
  ])("%s", (_, changes, texts) => {
    expect(textsOf(wrongLines(factsOf(changes)))).toEqual(texts);
  });
});

describe("what was done", () => {
  const eviction = { ...pod, at: NOW, round: 1, plugin: "p", scope: "", kind: "forced", reason: "" } as const;
  const outcome = { at: NOW - 4_000, result: "terminated", message: "pod deleted" } as const;
  it.each<[string, Parameters<typeof factsOf>[0], string[]]>([
    ["nothing", {}, ["Nothing in the last hour"]],
    [
      "an eviction",
      { evictions: [{ ...eviction, dryRun: false, outcome }] },
      ["1 pod evicted in the last hour", "The last, 4 s ago: shop/cart, evicted: pod deleted"],
    ],
    [
      "the same pod twice in dry run",
      { evictions: [1, 2].map((round) => ({ ...eviction, round, dryRun: true, outcome: null })) },
      ["1 pod would have been evicted in the last hour (dry run)"],
    ],
    [
      "an eviction in progress",
      { evictions: [{ ...eviction, dryRun: false, outcome: null }] },
      ["1 eviction in progress"],
    ],
    [
      "an eviction that ended earlier than an hour ago",
      { evictions: [{ ...eviction, dryRun: false, outcome: { ...outcome, at: NOW - 3_600_001 } }] },
      ["Nothing in the last hour"],
    ],
    [
      "records of it that are missing",
      { gaps: [{ from: NOW - 1_800_000, to: NOW - 600_000, why: "the disk was full" }] },
      [
        "Nothing is recorded for the last hour. Records are missing between 2026-11-21T20:30:00.000Z and 2026-11-21T20:50:00.000Z: the disk was full",
      ],
    ],
    [
      "an eviction, and records that are missing",
      {
        evictions: [{ ...eviction, dryRun: false, outcome }],
        gaps: [{ from: NOW - 1_800_000, to: NOW - 600_000, why: "the disk was full" }],
      },
      [
        "1 pod evicted in the last hour",
        "The last, 4 s ago: shop/cart, evicted: pod deleted",
        "Records are missing between 2026-11-21T20:30:00.000Z and 2026-11-21T20:50:00.000Z: the disk was full",
      ],
    ],
    [
      "records of before it that are missing",
      { gaps: [{ from: 0, to: NOW - 3_600_001, why: "the disk was full" }] },
      ["Nothing in the last hour"],
    ],
    [
      "more than was read",
      { evictions: [], isCut: true },
      ["There were more evictions in the last hour than are counted here"],
    ],
  ])("%s", (_, changes, texts) => {
    expect(textsOf(doneLines(factsOf(changes)))).toEqual(texts);
  });
});

describe("what comes next", () => {
  it.each<[string, Parameters<typeof factsOf>[0], string[]]>([
    ["nothing", {}, ["Nothing is planned: each round asks the plugins again"]],
    [
      "no round since the start",
      { "eviction/budgets": { ...budgets, at: null } },
      ["The first round: none has run since the agent's start"],
    ],
    [
      "pressure that lasts, with the pods that are not offered",
      withThreshold({
        unserved: {
          reason: "namedNone",
          message: "named none of 1 pod",
          since: NOW,
          notOffered: [{ reason: "ownerLimit", pods: 2, until: UNTIL }],
        },
      }),
      [
        "No pod is selected for memory-watch: named none of 1 pod; 2 pods not offered: owner limit until 2026-11-21T21:05:00.000Z",
      ],
    ],
    [
      "a grace period",
      withThreshold({ confirmed: false, gracePeriodSeconds: 30 }),
      ["The threshold of memory-watch counts from 2026-11-21T21:00:18.000Z, after its grace period"],
    ],
    [
      "an eviction in progress",
      { "eviction/budgets": { ...budgets, pending: [{ ...pending, deadline: UNTIL }] } },
      ["The eviction of shop/cart must end by 2026-11-21T21:05:00.000Z"],
    ],
    [
      "a limit",
      {
        "eviction/budgets": {
          ...budgets,
          limited: [{ ...pod, plugin: "p", reason: "ownerLimit", until: UNTIL }],
        },
      },
      ["1 pod on hold: owner limit until 2026-11-21T21:05:00.000Z"],
    ],
    [
      "a plugin in dry run",
      {
        ...withThreshold({}),
        node: { ...node, eviction: { ...node.eviction!, dryRunPlugins: ["memory-watch"] } },
      },
      ["memory-watch is in dry run: only recorded"],
    ],
  ])("%s", (_, changes, texts) => {
    expect(textsOf(nextLines(factsOf(changes)))).toEqual(texts);
  });
});
