import { createKubeMetrics } from "@nodekeeper/core/kube";
import { createWorkQueueMetrics, FakeClock, Registry, silentLogger } from "@nodekeeper/core/lib";
import { NodeTainter } from "../act/node-tainter.ts";
import { createEvictionMetrics } from "../metrics.ts";
import { FakeNode } from "./fake-node.ts";
import { testPolicy } from "./rounds.ts";

/** A running `NodeTainter` with a fake Node. */
export function setUp(fault: FakeNode["fault"] = () => undefined) {
  const clock = new FakeClock();
  const node = new FakeNode(clock);
  node.fault = fault;
  const registry = new Registry();
  const events: string[] = [];
  const changes: string[] = [];
  const warnings: string[] = [];
  const tainter = new NodeTainter({
    context: {
      client: node.client,
      nodeName: "node-1",
      events: { record: ({ message }) => void events.push(message) },
      policy: () => testPolicy({ conditionTransitionPeriodMs: 300_000 }),
      clock,
      log: { ...silentLogger, warn: (_: object, message?: string) => void warnings.push(message ?? "") },
      metrics: createEvictionMetrics(registry),
      kubeMetrics: createKubeMetrics(registry),
      queueMetrics: createWorkQueueMetrics(registry),
    },
    fieldManager: "nodekeeper",
    onChange: (message, kind) => void changes.push(`${kind}: ${message}`),
  });
  const stop = new AbortController();
  const running = tainter.run(stop.signal);
  const check = tainter.healthCheck();
  return {
    clock,
    node,
    tainter,
    events,
    changes,
    warnings,
    health: () => check.check(),
    ids: () => node.taints?.map(({ key, effect }) => `${key}:${effect}`),
    /** Rounds of five seconds with these desired taints. */
    async rounds(number: number, ...names: string[]) {
      for (let round = 0; round < number; round++) {
        tainter.setDesired(
          names.map((name) => ({ key: `nodekeeper.dev/${name}`, effect: "NoSchedule", since: 0, why: "" })),
          true,
        );
        await clock.step(5_000);
      }
    },
    async [Symbol.asyncDispose]() {
      stop.abort();
      await running;
    },
  };
}

export const squeeze = { key: "nodekeeper.dev/Squeeze", effect: "NoSchedule" };
export const foreign = { key: "example.com/maintenance", effect: "NoSchedule", value: "by-hand" };
