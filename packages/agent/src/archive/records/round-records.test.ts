import { decide, type EvictionOutcome } from "@nodekeeper/api/decide";
import type { RoundRecord } from "@nodekeeper/api/records";
import { describe, expect, it } from "vitest";
import {
  evictPod,
  nodeCondition,
  type TestPlugin,
  TestRounds,
  testPod,
} from "../../eviction/testing/rounds.ts";
import { evictionTrace } from "./eviction-trace.ts";
import { RoundRecords } from "./round-records.ts";

let nextId = 1;

/** Plays a round and returns its record. */
function play(rounds: TestRounds, plugins: Record<string, TestPlugin>): RoundRecord {
  const input = rounds.input(plugins);
  const decision = decide(input);
  rounds.state = decision.state;
  rounds.outcomes = [];
  return { id: nextId++, input, decision };
}

const shown = (records: RoundRecords, round: RoundRecord) =>
  records.of(round).map(({ record }) => `${record.attributes["nodekeeper.result"]}: ${record.message}`);

describe("the records of rounds", () => {
  it("have a decision per pod with a consequence, and none about the others", () => {
    const rounds = new TestRounds([testPod("web"), testPod("other"), testPod("kept", { isStatic: true })]);
    const records = new RoundRecords();
    const forced = [evictPod("web", { force: true }), evictPod("kept", { force: true })];
    const first = play(rounds, { p: { pods: forced } });
    expect(shown(records, first)).toEqual([
      "selected: default/web selected for eviction: memory is low",
      expect.stringMatching(/^refused: default\/kept requested eviction refused: /),
    ]);
    const { record } = records.of(first)[0]!;
    expect(record.eviction).toEqual({ uid: "web", selectedAt: first.input.now });
    expect(record.attributes).toMatchObject({ "nodekeeper.plugin": "p", "nodekeeper.round": first.id });
  });

  it("have a refusal that repeats once, and again after it ended", () => {
    const rounds = new TestRounds([testPod("kept", { isStatic: true })]);
    const records = new RoundRecords();
    const refused = { p: { pods: [evictPod("kept", { force: true })] } };
    const counts = [refused, refused, {}, refused].map((plugins) => {
      rounds.pass(10);
      return records.of(play(rounds, plugins)).length;
    });
    expect(counts).toEqual([1, 0, 0, 1]);
  });

  it("have a refusal that repeats again if no round was recorded in between for some minutes", () => {
    const rounds = new TestRounds([testPod("kept", { isStatic: true })]);
    const records = new RoundRecords();
    const counts = [0, 299, 300, 301].map((seconds) => {
      rounds.pass(seconds);
      return records.of(play(rounds, { p: { pods: [evictPod("kept", { force: true })] } })).length;
    });
    expect(counts).toEqual([1, 0, 0, 1]);
  });

  it("have no refusal of a soft request", () => {
    const rounds = new TestRounds([testPod("kept", { isStatic: true })]);
    const soft = play(rounds, { p: { pods: [evictPod("kept")] } });
    expect(soft.decision.refusals).toHaveLength(1);
    expect(new RoundRecords().of(soft)).toEqual([]);
  });

  it("have conditions that are set and cleared", () => {
    const rounds = new TestRounds([], { conditionTransitionPeriodMs: 30_000 });
    const records = new RoundRecords();
    const met = { p: { pods: [], podsCondition: nodeCondition("DiskHot") } };
    expect(shown(records, play(rounds, met))).toEqual([
      expect.stringMatching(/^set: condition DiskHot set: p reports/),
    ]);
    rounds.pass(60);
    expect(shown(records, play(rounds, { p: {} }))).toEqual([
      expect.stringMatching(/^cleared: condition DiskHot cleared/),
    ]);
  });

  it("have the end of an eviction, also of a pod that is gone, with the eviction's identity", () => {
    const rounds = new TestRounds([testPod("web")]);
    const records = new RoundRecords();
    const selection = play(rounds, { p: { pods: [evictPod("web", { force: true })] } });
    records.of(selection);
    rounds.accept("web");
    rounds.pass(5);
    rounds.remove("web");
    const selectedAt = selection.input.now;
    const outcome: EvictionOutcome = {
      ...{ uid: "web", namespace: "default", name: "web", result: "terminated", message: "pod deleted" },
      ...{ sent: true, selectedAt, acceptedAt: selectedAt + 1_000, endedAt: selectedAt + 4_000 },
    };
    rounds.outcomes = [outcome];
    const end = play(rounds, { p: {} });
    const [ended] = records.of(end);
    expect(ended!.record).toMatchObject({
      message: "default/web eviction terminated: pod deleted",
      severity: "info",
      eviction: { uid: "web", selectedAt },
    });
    const trace = evictionTrace({
      ...{ eviction: { uid: "web", selectedAt }, outcome, endedBy: end.input.now, selection },
      steps: [
        { uid: "web", at: selectedAt - 60_000, message: "of an earlier eviction" },
        { uid: "web", at: selectedAt + 1_000, message: "POST eviction: accepted" },
      ],
    });
    const ms = (nanos: bigint) => Number(nanos / 1_000_000n) - selectedAt;
    expect(
      trace.map(({ name, startTimeUnixNano, endTimeUnixNano }) => [
        name,
        ms(startTimeUnixNano),
        ms(endTimeUnixNano),
      ]),
    ).toEqual([
      ["evict pod", 0, 4_000],
      ["send", 0, 1_000],
      ["terminate", 1_000, 4_000],
    ]);
    expect(trace[0]!.events.map(({ name }) => name)).toEqual(["POST eviction: accepted"]);
    expect(new Set(trace.map(({ traceId }) => Buffer.from(traceId).toString("hex"))).size).toBe(1);
    expect(trace[0]!.traceId).toHaveLength(16);
    expect(new Set(trace.map(({ spanId }) => Buffer.from(spanId).toString("hex"))).size).toBe(3);
    expect(
      trace.slice(1).every(({ parentSpanId }) => Buffer.from(parentSpanId).equals(trace[0]!.spanId)),
    ).toBe(true);
    // The same again, also without the round that selected the pod.
    const again = evictionTrace({
      ...{ eviction: { uid: "web", selectedAt }, outcome, endedBy: end.input.now, selection: undefined },
      steps: [],
    });
    expect(again.map(({ spanId }) => spanId)).toEqual(trace.map(({ spanId }) => spanId));
  });
});
