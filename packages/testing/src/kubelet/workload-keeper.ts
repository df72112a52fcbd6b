import {
  type KubeApiClient,
  type KubeMetrics,
  type KubeObject,
  podResource,
  Watcher,
} from "@nodekeeper/core/kube";
import { type Clock, type Logger, type Runnable, WorkQueue } from "@nodekeeper/core/lib";
import { isFinished, type JsonPod } from "./pods.ts";

/** A set of identical pods to keep running. */
export interface Workload {
  /** Unique among the workloads. Prefix of the pods' names. */
  name: string;
  namespace: string;
  /** Kind of the pods' controller. The controller object is not created. */
  owner: "ReplicaSet" | "DaemonSet";
  replicas: number;
  labels?: Record<string, string>;
  annotations?: Record<string, string>;
  /** Pod spec. The node name is added. */
  spec: Record<string, unknown>;
}

export interface WorkloadKeeperOptions {
  client: KubeApiClient;
  nodeName: string;
  workloads: readonly Workload[];
  clock: Clock;
  log: Logger;
  kubeMetrics: KubeMetrics;
}

// Label with the name of a pod's workload.
const WORKLOAD_LABEL = "dev.nodekeeper.dev/workload";
const RETRY = { baseMs: 500, maxMs: 10_000 };

/**
 * Keeps the pods of workloads running on one node. Replaces a pod that was deleted or is terminating immediately by one
 * with a new name, as the ReplicaSet controller does. Does not delete surplus pods.
 */
export class WorkloadKeeper implements Runnable {
  readonly name = "workload keeper";
  readonly #options: WorkloadKeeperOptions;
  readonly #workloads: ReadonlyMap<string, Workload>;
  readonly #watcher: Watcher;
  readonly #queue: WorkQueue;
  /** By UID. */
  readonly #pods = new Map<string, JsonPod>();
  /** UIDs of pods that the watch reported since the last create started. */
  readonly #reported = new Set<string>();

  constructor(options: WorkloadKeeperOptions) {
    const { client, clock, log, kubeMetrics: metrics, workloads } = options;
    this.#options = options;
    this.#workloads = new Map(workloads.map((workload) => [workload.name, workload]));
    this.#queue = new WorkQueue({ name: this.name, clock, log, backoff: RETRY });
    this.#watcher = new Watcher(
      { client, clock, log, metrics },
      {
        resource: podResource,
        labelSelector: WORKLOAD_LABEL,
        handler: {
          onReplace: (pods) => this.#replace(pods),
          onUpsert: (pod) => this.#upsert(pod),
          onDelete: (pod) => this.#delete(pod),
        },
      },
    );
  }

  async run(signal: AbortSignal): Promise<void> {
    await Promise.all([
      this.#watcher.run(signal),
      this.#queue.run(signal, 1, (name) => this.#fill(name, signal)),
    ]);
  }

  #replace(pods: KubeObject[]): void {
    this.#pods.clear();
    for (const pod of pods) this.#pods.set(pod.metadata.uid!, pod);
    for (const name of this.#workloads.keys()) this.#queue.add(name);
  }

  #upsert(pod: KubeObject): void {
    this.#reported.add(pod.metadata.uid!);
    this.#pods.set(pod.metadata.uid!, pod);
    this.#changed(pod);
  }

  #delete(pod: KubeObject): void {
    this.#reported.add(pod.metadata.uid!);
    this.#pods.delete(pod.metadata.uid!);
    this.#changed(pod);
  }

  #changed(pod: KubeObject): void {
    const name = workloadOf(pod);
    if (this.#workloads.has(name)) this.#queue.add(name);
  }

  async #fill(name: string, signal: AbortSignal): Promise<void> {
    const workload = this.#workloads.get(name)!;
    const { client, nodeName } = this.#options;
    while (this.#alive(name) < workload.replicas) {
      this.#reported.clear();
      const made = await client.create(podResource, podOf(workload, nodeName), { signal });
      // Recorded before the watch reports the pod, so that no second one is created. If the watch was faster, its state
      // is newer.
      if (!this.#reported.has(made.metadata.uid!)) this.#pods.set(made.metadata.uid!, made);
    }
  }

  #alive(name: string): number {
    const alive = [...this.#pods.values()].filter(
      (pod) => workloadOf(pod) === name && pod.metadata.deletionTimestamp === undefined && !isFinished(pod),
    );
    return alive.length;
  }
}

function workloadOf({ metadata }: KubeObject): string {
  return metadata.labels?.[WORKLOAD_LABEL] ?? "";
}

function podOf(
  { name, namespace, owner, labels, annotations, spec }: Workload,
  nodeName: string,
): KubeObject {
  const metadata = {
    generateName: `${name}-`,
    namespace,
    labels: { app: name, ...labels, [WORKLOAD_LABEL]: name },
    ...(annotations ? { annotations } : {}),
    // The UID is a placeholder: no component looks up the owner.
    ownerReferences: [
      { apiVersion: "apps/v1", kind: owner, name, uid: `workload-${namespace}-${name}`, controller: true },
    ],
  };
  return { metadata, spec: { ...spec, nodeName } };
}
