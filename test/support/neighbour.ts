import { afterAll, beforeAll } from "vitest";
import { type RunningAgent, startAgent, untilWidgets } from "./agent.ts";
import { startCluster, type TestCluster } from "./cluster.ts";
import { startGoodPlugin, widgets } from "./plugins.ts";

/** A well-behaved plugin beside a bad one. */
export interface Neighbour {
  /** Reports a new value and waits until the API server has it. */
  update(): Promise<void>;
  stop(): Promise<void>;
}

export async function startNeighbour(
  cluster: TestCluster,
  socketDir: string,
  name = "neighbour",
): Promise<Neighbour> {
  let value = 1;
  const plugin = await startGoodPlugin(socketDir, name, widgets(name, value));
  await untilWidgets(cluster, name, value);
  return {
    async update() {
      plugin.say(widgets(name, ++value));
      await untilWidgets(cluster, name, value);
    },
    stop: () => plugin.stop(),
  };
}

/** A cluster, an agent and a neighbour for all tests of a file, in which they run bad plugins. */
export function useNeighbour(): { cluster: TestCluster; agent: RunningAgent; neighbour: Neighbour } {
  const node = {} as ReturnType<typeof useNeighbour>;
  beforeAll(async () => {
    node.cluster = await startCluster();
    node.agent = await startAgent(node.cluster);
    node.neighbour = await startNeighbour(node.cluster, node.agent.pluginDir);
  });
  afterAll(async () => {
    await node.neighbour.stop();
    await node.agent.stop();
    await node.cluster.stop();
  });
  return node;
}
