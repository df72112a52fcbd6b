import type { EvictionOutcome } from "@nodekeeper/api/decide";
import { decide } from "@nodekeeper/api/decide";
import type { RoundRecord } from "@nodekeeper/api/records";
import { expect, it } from "vitest";
import { evictPod, TestRounds, testPod } from "../../eviction/testing/rounds.ts";
import { traceIdOf } from "./eviction-trace.ts";
import { RecordBuilder } from "./record-builder.ts";

/** Builds the records of a round that evicts the pod "web", with these outcomes of its earlier evictions. */
async function recordsWith(outcomes: EvictionOutcome[], onSelection = () => {}) {
  const rounds = new TestRounds([testPod("web")]);
  rounds.outcomes = outcomes;
  const input = rounds.input({ p: { pods: [evictPod("web", { force: true })] } });
  const round: RoundRecord = { id: 7, input, decision: decide(input) };
  const builder = new RecordBuilder(
    {
      round: () => round,
      selection: () => {
        onSelection();
        return undefined;
      },
      pod: () => undefined,
      events: () => [],
      steps: () => [],
      podOfUid: () => undefined,
    },
    true,
  );
  return (await builder.build({ id: 1, record: "r", kind: "round", at: input.now, key: "7", body: null }))!;
}

const outcome = (selectedAt: number, changes: Partial<EvictionOutcome> = {}): EvictionOutcome => ({
  ...{ uid: "web", namespace: "default", name: "web", result: "withdrawn", message: "interrupted" },
  ...{ selectedAt, ...changes },
});

it("have the trace of an eviction whose pod is selected again in the round that records its end", async () => {
  const [record, ...others] = await recordsWith([outcome(5)]);
  expect(others).toEqual([]);
  expect(record!.attributes["nodekeeper.result"]).toBe("selected");
  const ids = new Set(record!.traces!.flat().map(({ traceId }) => Buffer.from(traceId).toString("hex")));
  expect([...ids]).toEqual([Buffer.from(traceIdOf({ uid: "web", selectedAt: 5 })).toString("hex")]);
});

it("have one trace for each eviction that ended, with how it ended, and none while it is overdue", async () => {
  const [record] = await recordsWith([
    outcome(5, { result: "terminated", message: "pod deleted" }),
    outcome(5),
    outcome(6),
    outcome(7, { result: "overdue" }),
  ]);
  const wholes = record!.traces!.flat().filter(({ name }) => name === "evict pod");
  expect(wholes.map(({ startTimeUnixNano, status }) => [startTimeUnixNano, status?.message])).toEqual([
    [5_000_000n, ""],
    [6_000_000n, "interrupted"],
  ]);
});

it("are built from one decoded round per turn of the event loop", async () => {
  let turns = 0;
  const tick = () => {
    turns++;
    if (turns < 1_000) setImmediate(tick);
  };
  tick();
  const decodedIn: number[] = [];
  const onSelection = () => void decodedIn.push(turns);
  await recordsWith([outcome(5), outcome(6), outcome(7)], onSelection);
  expect(new Set(decodedIn).size).toBe(3);
});
