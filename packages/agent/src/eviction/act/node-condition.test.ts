import type { EventInput, KubeObject } from "@nodekeeper/core/kube";
import { createWorkQueueMetrics, FakeClock, Registry, silentLogger, stopped } from "@nodekeeper/core/lib";
import { afterEach, beforeEach, expect, it } from "vitest";
import { unavailable } from "../testing/evictor-setup.ts";
import { type DesiredNodeCondition, NodeCondition } from "./node-condition.ts";

const blocked: DesiredNodeCondition = { status: "True", reason: "PluginLate", message: "p is late" };
const possible: DesiredNodeCondition = {
  status: "False",
  reason: "EvictionPossible",
  message: "all is well",
};
const ready = { type: "Ready", status: "True" };

let clock: FakeClock;
let node: KubeObject;
let writes: { condition: Record<string, unknown>; options: Record<string, unknown> | undefined }[];
let events: EventInput[];
let failures: Error[];
let condition: NodeCondition;
let stop: AbortController;
let running: Promise<void>;

beforeEach(() => {
  clock = new FakeClock();
  [writes, events, failures, stop] = [[], [], [], new AbortController()];
  node = { metadata: { name: "node-1", uid: "uid-1" }, status: { conditions: [ready] } };
  condition = new NodeCondition({
    client: {
      async apply(_resource, object, options) {
        const error = failures.shift();
        if (error) throw error;
        const [own] = (object.status as { conditions: Record<string, unknown>[] }).conditions;
        writes.push({ condition: own!, options: options as Record<string, unknown> | undefined });
        node = { ...node, status: { conditions: [ready, own] } };
        return node;
      },
    },
    nodeName: "node-1",
    events: { record: (event) => void events.push(event) },
    clock,
    log: silentLogger,
    queueMetrics: createWorkQueueMetrics(new Registry()),
  });
  running = condition.run(stop.signal);
});

afterEach(async () => {
  stop.abort(stopped("test is over"));
  await running.catch(() => {});
});

/** Desires the condition as True, for a Node that is known, and lets it be written. */
async function block(): Promise<void> {
  condition.seen(node);
  condition.setDesired(blocked);
  await clock.step(0);
}

const statuses = () => writes.map(({ condition: { status } }) => status);

it("is written first when it becomes True, with an Event, and stays as False afterwards", async () => {
  condition.seen(node);
  condition.setDesired(possible);
  await clock.step(0);
  expect(writes).toEqual([]);
  condition.setDesired(blocked);
  await clock.step(0);
  expect(writes).toMatchObject([
    {
      condition: { type: "EvictionBlocked", ...blocked },
      options: { subresource: "status", fieldManager: "nodekeeper-eviction", force: true },
    },
  ]);
  condition.setDesired(blocked);
  await clock.step(120_000);
  condition.setDesired(possible);
  await clock.step(0);
  expect(statuses()).toEqual(["True", "False"]);
  expect(events).toMatchObject([
    {
      type: "Warning",
      reason: "EvictionBlocked",
      message: "PluginLate: p is late",
      regarding: { kind: "Node" },
    },
  ]);
});

it("is not an Event after a restart of the agent while the Node still has it", async () => {
  condition.seen({ ...node, status: { conditions: [{ type: "EvictionBlocked", ...blocked }] } });
  condition.setDesired(blocked);
  await clock.step(0);
  expect([writes, events]).toEqual([[], []]);
});

it("has the time of its last transition while its text changes, which is at most once a minute", async () => {
  await block();
  for (const second of [5, 10, 15]) {
    condition.setDesired({ ...blocked, message: `text ${second}` });
    await clock.step(5_000);
  }
  expect(writes).toHaveLength(1);
  await clock.step(60_000);
  expect(writes.map(({ condition: { message } }) => message)).toEqual(["p is late", "text 15"]);
  expect(new Set(writes.map(({ condition: { lastTransitionTime } }) => lastTransitionTime)).size).toBe(1);
});

it("is restored if another client removes it, with an increasing delay", async () => {
  await block();
  const remove = () => {
    node = { ...node, status: { conditions: [ready] } };
    condition.seen(node);
  };
  remove();
  await clock.step(0);
  expect(writes).toHaveLength(2);
  remove();
  await clock.step(0);
  expect(writes).toHaveLength(2);
  await clock.step(60_000);
  expect(writes).toHaveLength(3);
  expect(events).toHaveLength(1);
});

it("is retried after a failure, which is shown until it succeeded", async () => {
  failures = [unavailable, unavailable];
  await block();
  expect(condition.lastError).toBe("connection refused");
  for (let at = 0; at < 30; at++) await clock.step(1_000);
  expect(statuses()).toEqual(["True"]);
  expect(condition.lastError).toBeUndefined();
});

it("is not written while nothing is desired, and not for a Node that does not exist", async () => {
  condition.seen(undefined);
  condition.setDesired(blocked);
  await clock.step(1_000);
  condition.setDesired(undefined);
  condition.seen(node);
  await clock.step(60_000);
  expect(writes).toEqual([]);
});

it("reports no failed write in full dry run: nothing is to be written", async () => {
  failures.push(new Error("connection reset"));
  await block();
  expect(condition.lastError).toBe("connection reset");
  condition.setDesired(undefined);
  await clock.step(600_000);
  expect(condition.lastError).toBeUndefined();
  expect(writes).toEqual([]);
});

it("is written again after a failed write that the next round made unnecessary", async () => {
  failures.push(new Error("connection reset"));
  await block();
  condition.setDesired(possible);
  await clock.step(600_000);
  expect(writes).toEqual([]);
  condition.setDesired(blocked);
  await clock.step(600_000);
  expect(statuses()).toEqual(["True"]);
});

it("has no second Event after a restart, whether the round or the Node comes first", async () => {
  const before = { ...node, status: { conditions: [ready, { type: "EvictionBlocked", ...blocked }] } };
  condition.setDesired(blocked);
  condition.seen(before);
  await clock.step(0);
  expect([events, writes]).toEqual([[], []]);
});
