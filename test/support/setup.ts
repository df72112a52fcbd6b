import { join } from "node:path";
import { type Clock, systemClock } from "@nodekeeper/core/lib";
import { type RunningAgent, startAgent, untilWidgets } from "./agent.ts";
import { startCluster, type TestCluster } from "./cluster.ts";
import { type GoodPlugin, startGoodPlugin, widgets } from "./plugins.ts";

/** A cluster, an agent and one plugin, named "steady", whose widgets are published as 1. */
export interface Setup extends AsyncDisposable {
  cluster: TestCluster;
  plugin: GoodPlugin;
  /** The running agent. A test that starts another one must stop it first. */
  agent: RunningAgent;
  /** Stops the agent and starts it anew with the same directories. */
  restart(betweenTheTwo?: () => void | Promise<void>): Promise<void>;
}

/** `flags` and `clock` are those of each agent; the flags go over `agentFlags`. */
export async function setUp(flags: Record<string, string> = {}, clock: Clock = systemClock): Promise<Setup> {
  const cluster = await startCluster();
  const plugin = await startGoodPlugin(join(cluster.directory, "plugins"), "steady", widgets("steady", 1));
  const setup: Setup = {
    cluster,
    plugin,
    agent: await startAgent(cluster, flags, undefined, clock),
    async restart(betweenTheTwo = () => {}) {
      await setup.agent.stop();
      await betweenTheTwo();
      setup.agent = await startAgent(cluster, flags, undefined, clock);
    },
    async [Symbol.asyncDispose]() {
      await plugin.stop();
      await setup.agent.stop();
      await cluster.stop();
    },
  };
  await untilWidgets(cluster, "steady", 1);
  return setup;
}
