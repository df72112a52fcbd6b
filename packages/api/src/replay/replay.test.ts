import { describe, expect, it } from "vitest";
import { summaryOf } from "../../../agent/src/eviction/records/round-summary.ts";
import {
  evictPod,
  type TestPlugin,
  TestRounds,
  testPod,
  testPolicy,
} from "../../../agent/src/eviction/testing/rounds.ts";
import { decide, type EvictionPolicy } from "../decide/index.ts";
import type { RoundRecord } from "../records/index.ts";
import { replay } from "./replay.ts";

const daemon = testPod("daemon", { owner: { kind: "DaemonSet", name: "ds", uid: "ds" } });
const skipDaemons = testPolicy().skip;
const takeDaemons = { skip: { ...skipDaemons, evictDaemonSetPods: true } };
const hard = (top: string[], candidateUids: string[] = []): TestPlugin => ({
  threshold: { metType: "hard", candidateUids },
  top,
});

function recorded(rounds: TestRounds, plugins: Record<string, TestPlugin>, id = 1): RoundRecord {
  const input = structuredClone(rounds.input(plugins));
  const decision = decide(input);
  rounds.state = decision.state;
  return { id, input, decision };
}

const under = (record: RoundRecord, changes: Partial<EvictionPolicy>) =>
  replay([record], testPolicy(changes));

describe("replay", () => {
  it("shows that a plugin would have been called that was not called then", () => {
    const record = recorded(new TestRounds([daemon]), { pressure: hard(["daemon"]) });
    expect(record.input.tops).toEqual([]);
    expect(under(record, takeDaemons)).toMatchObject({ rounds: 1, differing: [], uncertain: 1 });
    expect(under(record, {})).toMatchObject({ rounds: 1, differing: [], uncertain: 0 });
  });

  it("shows that a plugin would have been offered other pods", () => {
    const record = recorded(new TestRounds([daemon, testPod("web")]), { pressure: hard(["web"]) });
    expect(under(record, takeDaemons)).toMatchObject({ differing: [], uncertain: 1, victimsAfter: 1 });
    expect(under(record, { dryRunPlugins: ["pressure"] }).differing).toMatchObject([
      { notEvicted: [{ name: "web" }], unasked: [], otherOffer: [] },
    ]);
    const { differing } = under(record, { ...takeDaemons, dryRunPlugins: ["*"] });
    expect(differing).toMatchObject([{ otherOffer: ["pressure"] }]);
  });

  it("leaves no question open about a plugin that named its candidates, and these are the same", () => {
    const rounds = new TestRounds([daemon, testPod("web")]);
    const record = recorded(rounds, { pressure: hard(["web"], ["web"]), other: hard([], ["deleted"]) });
    expect(under(record, takeDaemons)).toMatchObject({ differing: [], uncertain: 0 });
    expect(under(record, {})).toMatchObject({ differing: [], uncertain: 0 });
  });

  it("compares in dry run who would have been evicted", () => {
    const rounds = new TestRounds([testPod("web"), testPod("db")], { dryRunPlugins: ["*"], burst: 1 });
    const record = recorded(rounds, { soft: { pods: [evictPod("web"), evictPod("db")] } });
    const dryRun = { dryRunPlugins: ["*"], burst: 1 };
    const [selected] = record.decision.dryRunVictims;
    const other = selected!.name === "web" ? "db" : "web";
    expect(under(record, dryRun)).toMatchObject({ differing: [], dryRunBefore: 1, dryRunAfter: 1 });

    const keep = testPod(selected!.name, { labels: { keep: "" } });
    const pods = [keep, testPod(other)];
    const labelled = recorded(new TestRounds(pods, dryRun), {
      soft: { pods: [evictPod("web"), evictPod("db")] },
    });
    const skip = { ...skipDaemons, labelKeys: ["keep"] };
    expect(under(labelled, { ...dryRun, skip })).toMatchObject({
      ...{ victimsBefore: 0, victimsAfter: 0, dryRunBefore: 1, dryRunAfter: 1 },
      differing: [
        {
          ...{ notEvicted: [], added: [] },
          dryRun: {
            missing: [{ name: selected!.name, why: expect.stringMatching(/^not a candidate: .*keep/) }],
            added: [{ name: other }],
          },
        },
      ],
    });

    const { differing, ...counts } = under(record, { dryRunPlugins: [], burst: 1 });
    expect(counts).toMatchObject({ victimsBefore: 0, victimsAfter: 1, dryRunBefore: 1, dryRunAfter: 0 });
    expect(differing).toMatchObject([
      { added: [{ name: selected!.name }], dryRun: { missing: [], added: [] } },
    ]);
    const live = recorded(new TestRounds([testPod("web")]), { soft: { pods: [evictPod("web")] } });
    expect(under(live, dryRun).differing).toMatchObject([
      { notEvicted: [{ why: "the plugin is in dry run" }], dryRun: { missing: [], added: [] } },
    ]);
  });

  it("finds another grace period", () => {
    const record = recorded(new TestRounds([testPod("web")]), {
      force: { pods: [evictPod("web", { force: true, gracePeriodSeconds: 600 })] },
    });
    const { differing } = under(record, {
      grace: { shortestSeconds: 0, longestSeconds: 60, allowZero: false },
    });
    expect(differing).toMatchObject([{ graceChanged: [{ name: "web", before: 600, after: 60 }] }]);
  });
});

describe("a round in a line", () => {
  it("names what was met with its values, and whose eviction ended", () => {
    const rounds = new TestRounds([testPod("web")]);
    const pressure = hard(["web"]);
    pressure.threshold = { metType: "hard", observedValue: 5, thresholdValue: 10, operator: "lessThan" };
    expect(summaryOf(recorded(rounds, { pressure }))).toMatchObject({
      met: ["pressure (hard): memory 5 < threshold 10"],
      victims: [{ name: "web" }],
    });
    rounds.remove("web");
    rounds.outcomes = [
      { uid: "web", result: "terminated", message: "pod deleted" },
      { uid: "stranger", result: "terminated", message: "pod deleted" },
    ];
    expect(summaryOf(recorded(rounds, {})).outcomes).toEqual([
      { uid: "web", namespace: "default", name: "web", result: "terminated", message: "pod deleted" },
      { uid: "stranger", namespace: "", name: "", result: "terminated", message: "pod deleted" },
    ]);
  });

  it("names when an eviction that a budget refused is retried, and the budget, of requested pods only", () => {
    const rounds = new TestRounds([testPod("web"), testPod("db")]);
    const budget = { name: "default/web", currentHealthy: 1, desiredHealthy: 1 };
    const retryAt = rounds.now + 45_000;
    rounds.state.paused = [
      { uid: "db", until: rounds.now + 10_000, reason: "429", budget: null },
      { uid: "web", until: retryAt, reason: "429", budget },
    ];
    expect(summaryOf(recorded(rounds, { soft: { pods: [evictPod("web")] } }))).toMatchObject({
      refusals: { paused: 1 },
      paused: [{ retryAt, budget: "default/web" }],
    });
  });
});
