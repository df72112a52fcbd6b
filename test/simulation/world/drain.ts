import { type KubeApiClient, podResource } from "@nodekeeper/core/kube";
import type { Machine } from "../machine/machine.ts";
import { type ApiServer, NODE } from "./api-server.ts";
import type { History } from "./history.ts";
import { protectedNames } from "./node.ts";
import { otherClient } from "./other-client.ts";

// As kubectl drain.
const RETRY_MS = 5_000;
const CORDON = { key: "node.kubernetes.io/unschedulable", effect: "NoSchedule" };

/** Drains the node as `kubectl drain` does: cordons it, and evicts its pods within their budgets. */
export class Drain {
  readonly #machine: Machine;
  readonly #history: History;
  readonly #api: ApiServer;
  #client: Promise<KubeApiClient> | undefined;
  #isRunning = false;

  constructor(machine: Machine, history: History, api: ApiServer) {
    this.#machine = machine;
    this.#history = history;
    this.#api = api;
  }

  /** Evicts the pods that the node has now, at most for a time in milliseconds, and makes the node schedulable again. */
  async run(longestMs: number): Promise<void> {
    if (this.#isRunning) return;
    this.#isRunning = true;
    const { scheduler, init } = this.#machine;
    const until = scheduler.now + longestMs;
    this.#cordon(true);
    let left = this.#api.store.list("pods", "default").filter(({ metadata }) => !isKept(metadata.name!));
    while (left.length > 0 && scheduler.now < until) {
      const asked = left.map(({ metadata }) => this.#evict(metadata.name!));
      const answers = await Promise.all(asked);
      left = left.filter((_pod, at) => !answers[at]);
      if (left.length > 0) await init.clock.sleep(RETRY_MS);
    }
    this.#cordon(false);
    this.#isRunning = false;
  }

  /** Returns whether the pod need not be evicted any more. */
  async #evict(name: string): Promise<boolean> {
    this.#client ??= otherClient(this.#api, "kubectl-drain");
    const client = await this.#client;
    const eviction = { apiVersion: "policy/v1", kind: "Eviction", metadata: { name, namespace: "default" } };
    try {
      await client.create(podResource, eviction, { subresource: "eviction" });
      return true;
    } catch (error) {
      return (error as { httpStatus?: number }).httpStatus === 404;
    }
  }

  #cordon(isUnschedulable: boolean): void {
    this.#history.note("operator", isUnschedulable ? "drains the node" : "uncordons the node");
    const { store } = this.#api;
    const node = store.get("nodes", NODE);
    if (!node) return;
    const { taints = [], ...spec } = (node.spec ?? {}) as { taints?: { key: string }[] };
    const others = taints.filter(({ key }) => key !== CORDON.key);
    store.put({
      ...node,
      spec: {
        ...spec,
        unschedulable: isUnschedulable,
        taints: isUnschedulable ? [...others, CORDON] : others,
      },
    });
  }
}

function isKept(name: string): boolean {
  return protectedNames.some((start) => name.startsWith(start));
}
