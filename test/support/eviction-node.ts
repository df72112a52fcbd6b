import { type Clock, systemClock } from "@nodekeeper/core/lib";
import { until } from "@nodekeeper/testing/until";
import { afterEach, beforeEach } from "vitest";
import { type RunningAgent, startAgent } from "./agent.ts";
import { startCluster, type TestCluster } from "./cluster.ts";
import { startEvictionPlugin, type TestEvictionPlugin } from "./eviction-plugin.ts";

/** A node of its own for each test of a file: the whole agent, with plugins on real sockets, in front of the embedded API server. */
export interface EvictionNode<C extends Clock = Clock> {
  /** Of the agents that are started. */
  clock: C;
  cluster: TestCluster;
  agent: RunningAgent;
  /** Starts the agent. Tests that start it again stop it before. */
  start(flags?: Record<string, string>, file?: string): Promise<void>;
  /** Serves a plugin, and waits until the agent has registered it. */
  addPlugin(name: string): Promise<TestEvictionPlugin>;
}

/** Starts a cluster before each test, and ends it with the agent and the plugins after it. */
export function useEvictionNode<C extends Clock = Clock>({
  clock = () => systemClock as Clock as C,
  ...options
}: Parameters<typeof startCluster>[0] & { clock?: () => C } = {}): EvictionNode<C> {
  const plugins: TestEvictionPlugin[] = [];
  const node = {
    async start(flags = {}, file) {
      node.agent = await startAgent(node.cluster, flags, file, node.clock);
    },
    async addPlugin(name) {
      const plugin = await startEvictionPlugin(node.agent.pluginDir, name);
      plugins.push(plugin);
      await until("registration", () => plugin.registered === true, { explain: () => node.agent.logLines });
      return plugin;
    },
  } as EvictionNode<C>;
  beforeEach(async () => {
    node.clock = clock();
    node.cluster = await startCluster(options);
  });
  afterEach(async () => {
    for (const plugin of plugins.splice(0)) await plugin.stop();
    await node.agent?.stop();
    await node.cluster.stop();
  });
  return node;
}
