import { expect, it } from "vitest";
import { evictPod, TestRounds, testPod, testPolicy } from "../../../agent/src/eviction/testing/rounds.ts";
import { decide } from "../decide/index.ts";
import { replay } from "../replay/index.ts";
import { type RoundRecord, readRecord } from "./round-record.ts";

/** A record with another policy, as a version of the agent wrote it. */
function recorded(policy: object): RoundRecord {
  const input = new TestRounds([testPod("web")]).input({});
  return { id: 1, input: { ...input, policy }, decision: decide(input) } as unknown as RoundRecord;
}

it("a recorded policy has the times that an earlier version recorded under other names", () => {
  const { policy } = readRecord(recorded({ conditionTransitionMs: 2_000, forgetPluginMs: 0 })).input;
  expect(policy).toMatchObject({ conditionTransitionPeriodMs: 2_000, forgetPluginAfterMs: 0 });
  expect(Object.keys(policy)).not.toEqual(expect.arrayContaining(["conditionTransitionMs"]));
});

it("a recorded policy without these times has the defaults of then", () => {
  expect(readRecord(recorded({ burst: 7 })).input.policy).toMatchObject({
    burst: 7,
    conditionTransitionPeriodMs: 300_000,
    forgetPluginAfterMs: 300_000,
  });
});

it("a record without the keys of the ranking is replayed by those of then: the QoS class before the priority", () => {
  const rounds = new TestRounds(
    [testPod("best", { priority: 100 }), testPod("burstable", { qosClass: "Burstable" })],
    { ranking: ["qosLevel", "qosClass", "priority", "scope"] },
  );
  const input = rounds.input({ soft: { pods: [evictPod("best"), evictPod("burstable")] } });
  const { ranking: _ranking, ...policy } = input.policy;
  const then = { id: 1, input: { ...input, policy }, decision: decide(input) } as RoundRecord;
  const read = readRecord(then);
  expect(read.input.policy.ranking).toEqual(["qosLevel", "qosClass", "priority", "scope"]);
  expect(decide(read.input).victims.map(({ name }) => name)).toEqual(["best"]);
  expect(replay([then], testPolicy()).differing).toMatchObject([
    { notEvicted: [{ name: "best" }], added: [{ name: "burstable" }] },
  ]);
});

// What decides after a restart is that a pod's eviction ended: an unknown result would weigh as none.
it("an outcome and a withdrawal that an earlier version recorded under other names are read and replayed", () => {
  const rounds = new TestRounds([testPod("web"), testPod("db")]);
  rounds.outcomes = [{ uid: "web", result: "terminated", message: "pod deleted" }];
  const input = structuredClone(rounds.input({ forcing: { pods: [evictPod("db", { force: true })] } }));
  const withdrawal = { uid: "db", namespace: "default", name: "db", stage: "started", reason: "cleared" };
  const now = { id: 1, input, decision: { ...decide(input), withdrawals: [withdrawal] } } as RoundRecord;
  const then = JSON.parse(
    JSON.stringify(now).replaceAll('"terminated"', '"gone"').replaceAll('"started"', '"begun"'),
  ) as RoundRecord;
  expect(then).not.toEqual(now);
  expect(readRecord(then)).toEqual(readRecord(now));
  expect(readRecord(now)).toEqual(now);
  expect(replay([then], testPolicy())).toEqual(replay([now], testPolicy()));
});

it("an end before the eviction was sent, which an earlier version recorded as terminated, is no eviction by the agent", () => {
  const rounds = new TestRounds([testPod("web")]);
  rounds.outcomes = [
    { uid: "a", result: "terminated", sent: false, message: "pod is already deleted" },
    { uid: "b", result: "terminated", sent: true, message: "pod deleted" },
  ];
  const input = rounds.input({});
  const { outcomes } = readRecord({ id: 1, input, decision: decide(input) }).input;
  expect(outcomes.map(({ result }) => result)).toEqual(["superseded", "terminated"]);
});

it("a pending eviction of which an earlier version did not record whether it was being sent may have been sent", () => {
  const rounds = new TestRounds([testPod("web")]);
  rounds.play({ forcing: { pods: [evictPod("web", { force: true })] } });
  const input = structuredClone(rounds.input({}));
  const [pending] = input.state.pending as { sendingAt?: number | null }[];
  delete pending!.sendingAt;
  const { state } = readRecord({ id: 1, input, decision: decide(input) }).input;
  expect(state.pending).toMatchObject([{ uid: "web", sendingAt: state.pending[0]!.since }]);
});
