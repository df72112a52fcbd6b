import { setTimeout as sleep } from "node:timers/promises";
import { PodLifecycleClient } from "@nodekeeper/sdk";
import { eventually } from "@nodekeeper/testing/until";
import { expect } from "vitest";
import type { ControlPlane } from "../control-plane.ts";
import { FollowedLog } from "../followed-log.ts";
import type { ClusterNode } from "../node.ts";
import { untilSameView } from "./same-view.ts";
import { deployment, deploymentsPath, untilReady } from "./workloads.ts";

const NAME = "rolling";
const REPLICAS = 2;

// By the state that the runtime has of a container now. One that started and ended while no agent ran is reported by its
// end alone.
const lives: Readonly<Record<string, readonly string[]>> = {
  created: [""],
  running: ["Started"],
  exited: ["Started Died", "Died"],
  removed: ["Started Died Removed", "Died Removed", "Removed"],
};

/**
 * Pods that are replaced again and again by a Deployment's rolling updates, and a consumer of the agent's event log that
 * follows it over restarts of the agent.
 */
export class RollingLoad {
  readonly #cluster: ControlPlane;
  readonly #node: ClusterNode;
  readonly #client: PodLifecycleClient;
  readonly #log: FollowedLog;
  #updates: Promise<void> = Promise.resolve();
  #isOver = false;

  private constructor(cluster: ControlPlane, node: ClusterNode, socket: string) {
    this.#cluster = cluster;
    this.#node = node;
    this.#client = new PodLifecycleClient({ socket });
    this.#log = new FollowedLog(this.#client);
  }

  /** Starts both; `socket` is the agent's. */
  static async start(cluster: ControlPlane, node: ClusterNode, socket: string): Promise<RollingLoad> {
    const load = new RollingLoad(cluster, node, socket);
    await eventually(() => expect(load.#log.snapshots).toBe(1));
    await cluster.admin.create(deploymentsPath, deployment(NAME, REPLICAS));
    await untilReady(cluster, `app=${NAME}`, REPLICAS);
    load.#updates = load.#update();
    // Reported by `check`; a case that fails before it must not fail the whole run.
    load.#updates.catch(() => {});
    return load;
  }

  /**
   * Stops the updates. Expects that the consumer received the events of each container once, in order and up to its
   * current state, without a second snapshot, and that agent and kubelet report the same pods. Returns the number of
   * containers and sandboxes.
   */
  async check(): Promise<number> {
    this.#isOver = true;
    await this.#updates;
    await untilReady(this.#cluster, `app=${NAME}`, REPLICAS);
    await untilSameView(this.#node, this.#client);
    await eventually(async () => {
      const pods = await this.#client.getPods();
      const all = pods.flatMap(({ containers, sandboxes }) => [...containers, ...sandboxes]);
      const states = new Map(all.map(({ id, state }) => [id, state]));
      const known = this.#log.byContainer;
      for (const [id, events] of known) {
        const steps = events.map(({ type }) => type.replace("Container", "")).join(" ");
        expect(lives[states.get(id) ?? "removed"], `${id}: ${steps}`).toContain(steps);
      }
      const rolling = pods.filter(({ name }) => name.startsWith(`${NAME}-`));
      expect(rolling.flatMap(({ containers }) => containers).filter(({ id }) => !known.has(id))).toEqual([]);
      expect(this.#log.snapshots).toBe(1);
    });
    return this.#log.byContainer.size;
  }

  async stop(): Promise<void> {
    this.#isOver = true;
    await this.#updates.catch(() => {});
    await this.#log.stop();
    this.#client.close();
    await this.#cluster.admin.delete(`${deploymentsPath}/${NAME}`);
    await untilReady(this.#cluster, `app=${NAME}`, 0);
  }

  async #update(): Promise<void> {
    for (let version = 1; !this.#isOver; version++) {
      const labels = { version: String(version) };
      const changed = { spec: { template: { metadata: { labels } } } };
      await this.#cluster.admin.patch(`${deploymentsPath}/${NAME}`, changed);
      await sleep(4_000);
    }
  }
}
