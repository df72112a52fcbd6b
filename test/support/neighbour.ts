import { untilWidgets } from "./agent.ts";
import type { TestCluster } from "./cluster.ts";
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
