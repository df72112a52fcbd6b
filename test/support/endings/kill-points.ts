import { until } from "@nodekeeper/testing/until";
import type { PlayedNode } from "./played-node.ts";
import { endings } from "./pod-endings.ts";
import type { Interception } from "./request-recorder.ts";
import { acceptedEvictions } from "./truth.ts";

/** What an agent goes through while the pods of a node end. Ends with an agent that runs. */
export type KillPoint = (node: PlayedNode) => Promise<void>;

// The agent sends eight evictions at a time: as many can be held at once.
const MOST_HELD = 8;

/** The points at which the agent is killed or stopped, by their names in the matrix. */
export const killPoints = {
  /** It runs: the pods end after the decision, while the reading before the call is on its way. */
  async running(node) {
    await node.startAgent();
    await strikeBeforeCalls(node);
  },

  /** Killed while the plugin is called, before anything is decided. */
  async beforeDecide(node) {
    await node.startAgent();
    await node.untilPodsKept();
    await node.untilRounds(1);
    const answer = node.plugin.evictPods;
    const asked = Promise.withResolvers<void>();
    node.plugin.evictPods = () => {
      node.killNow();
      asked.resolve();
      return {};
    };
    await asked.promise;
    await node.killAgent();
    node.plugin.evictPods = answer;
    await node.strike();
    request(node);
    await node.startAgent();
  },

  /** Killed when the decision is recorded, before a pod is read again. */
  async decided(node) {
    const reads = killAt(node, "read");
    await node.startAgent();
    await node.untilPodsKept();
    request(node);
    await reads;
    await node.killAgent();
    await node.strike();
    node.passAll();
    await node.startAgent();
  },

  /** Killed with the calls recorded as being sent; none has reached the API server. */
  async sending(node) {
    for (const names of batches()) {
      let held = 0;
      node.intercept("evict", () => {
        held++;
        return "hold";
      });
      await node.startAgent();
      await node.untilPodsKept();
      request(node, names);
      await until("the calls", () => held === names.length, { explain: () => node.output() });
      await node.killAgent();
      await node.strike(names);
    }
    await restart(node);
  },

  /** Killed after the API server accepted the calls, before the agent received a response. */
  async responseLost(node) {
    node.intercept("evict", () => "holdResponse");
    for (const [at, names] of batches().entries()) {
      await node.startAgent();
      await node.untilPodsKept();
      request(node, names);
      const accepted = (at + 1) * names.length;
      await until("the calls", () => acceptedEvictions(node.recorder).length >= accepted, {
        explain: () => node.output(),
      });
      await node.killAgent();
      await node.strike(names);
    }
    await restart(node);
  },

  /** Killed after the agent received all acceptances. */
  async accepted(node) {
    await node.startAgent();
    await node.untilPodsKept();
    request(node);
    await untilAccepted(node);
    await node.killAgent();
    await node.strike();
    await node.startAgent();
  },

  /** Killed when the pods are gone and the evictions have ended, before the next round. */
  async ended(node) {
    await node.startAgent({ evictionSyncPeriod: "5s" });
    await node.untilPodsKept();
    request(node);
    await untilAccepted(node);
    await node.strike();
    for (const pod of node.pods.values()) await node.others.finish(pod);
    const ended = async () => {
      const counts = await node.statements.counter("nodekeeper_eviction_ended_total", "outcome");
      return Object.values(counts).reduce((sum, count) => sum + count, 0) === node.pods.size;
    };
    await until("the ends", ended, { explain: () => node.output() });
    await node.killAgent();
    await node.startAgent();
  },

  /** Stopped properly after the decision; the pods end before it is started again. */
  async stopped(node) {
    const gate = holdReads(node);
    await node.startAgent();
    request(node);
    await until("the readings", () => gate.held() >= MOST_HELD, { explain: () => node.output() });
    await node.stopAgent();
    await node.strike();
    gate.open();
    await node.startAgent();
  },

  /** Stopped properly after all acceptances; the pods end before it is started again. */
  async stoppedAccepted(node) {
    await node.startAgent();
    request(node);
    await untilAccepted(node);
    await node.stopAgent();
    await node.strike();
    await node.startAgent();
  },
} satisfies Record<string, KillPoint>;

/** Plays the endings after the decision, while the readings before the calls are on their way to the API server. */
export async function strikeBeforeCalls(node: PlayedNode): Promise<void> {
  const gate = holdReads(node);
  request(node);
  await until("the readings", () => gate.held() >= MOST_HELD, { explain: () => node.output() });
  await node.strike();
  gate.open();
}

/** Lets the plugin request the pods of these endings. */
function request(node: PlayedNode, names: readonly string[] = Object.keys(endings)): void {
  node.wanted = names.map((name) => node.pods.get(name)!);
}

/** Holds the readings before calls until the gate is opened. */
function holdReads(node: PlayedNode): { held: () => number; open: () => void } {
  const opened = Promise.withResolvers<void>();
  let held = 0;
  node.intercept("read", async (): Promise<Interception> => {
    held++;
    await opened.promise;
    return "pass";
  });
  return { held: () => held, open: () => opened.resolve() };
}

async function untilAccepted(node: PlayedNode): Promise<void> {
  await until("all acceptances", () => acceptedEvictions(node.recorder).length === node.pods.size, {
    explain: () => node.output(),
  });
  const received = async () => {
    const counts = await node.statements.counter("nodekeeper_eviction_kills_total", "result");
    return counts.accepted === node.pods.size;
  };
  await until("all responses", received, { explain: () => node.output() });
}

async function killAt(node: PlayedNode, kind: "read"): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  node.intercept(kind, () => {
    node.killNow();
    resolve();
    return "hold";
  });
  return promise;
}

async function restart(node: PlayedNode): Promise<void> {
  node.passAll();
  request(node);
  await node.startAgent();
}

function batches(): string[][] {
  const names = Object.keys(endings);
  const half = names.length / 2;
  return [names.slice(0, half), names.slice(half)];
}
