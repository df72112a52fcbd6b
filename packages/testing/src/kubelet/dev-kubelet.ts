import { ContainerEventType } from "@nodekeeper/core/gen/runtime/v1/api.ts";
import {
  type KubeApiClient,
  type KubeMetrics,
  type KubeObject,
  podResource,
  Watcher,
} from "@nodekeeper/core/kube";
import { type Clock, codeOf, type Logger, type Runnable, WorkQueue } from "@nodekeeper/core/lib";
import type { SimulatedRuntime } from "../runtime/simulated-runtime.ts";
import { PodRuns } from "./pod-runs.ts";
import { changedStatus, millisecondsOf, podStatus, restarts } from "./pod-status.ts";
import { isFinished, type JsonPod } from "./pods.ts";
import { endingOf } from "./sample-endings.ts";

export interface DevKubeletOptions {
  client: KubeApiClient;
  nodeName: string;
  runtime: SimulatedRuntime;
  clock: Clock;
  log: Logger;
  kubeMetrics: KubeMetrics;
  /** Address of the node in the status of pods. Default 127.0.0.1. */
  hostIP?: string;
  /** Time from SIGTERM until containers exit, in milliseconds. Default 1,000. */
  stopAfterMs?: number;
}

const WORKERS = 4;
const MOST_PODS = 1_000;
const RETRY = { baseMs: 100, maxMs: 10_000 };
const DEFAULT_GRACE_SECONDS = 30;
const RESTART_DELAY_MS = 1_000;
// Like the kubelet, which confirms the termination only after it observed it in the runtime.
const CONFIRM_DELAY_MS = 500;

/**
 * Runs the pods of one node in a simulated runtime, as the kubelet does in a real one. Starts their containers, reports
 * their status to the API server, stops deleted pods within their grace period, and then removes them from the API
 * server. Does not affect other pods of the runtime.
 */
export class DevKubelet implements Runnable {
  readonly name = "dev kubelet";
  readonly #options: DevKubeletOptions;
  readonly #runs: PodRuns;
  readonly #watcher: Watcher;
  readonly #queue: WorkQueue;
  readonly #pods = new Map<string, JsonPod>();
  /** Grace periods of pods that are being stopped, in seconds, by UID. */
  readonly #stopping = new Map<string, number>();
  readonly #stops = new Set<Promise<void>>();

  constructor(options: DevKubeletOptions) {
    const { client, nodeName, runtime, clock, log, kubeMetrics: metrics, stopAfterMs = 1_000 } = options;
    this.#options = options;
    this.#runs = new PodRuns({ runtime, stopAfterMs });
    this.#queue = new WorkQueue({ name: this.name, clock, log, backoff: RETRY, maxKeys: 2 * MOST_PODS });
    this.#watcher = new Watcher(
      { client, clock, log, metrics },
      {
        resource: podResource,
        fieldSelector: `spec.nodeName=${nodeName}`,
        handler: {
          onReplace: (pods) => this.#replace(pods),
          onUpsert: (pod) => this.#upsert(pod),
          onDelete: (pod) => this.#delete(pod.metadata.uid),
        },
      },
    );
  }

  async run(signal: AbortSignal): Promise<void> {
    // Starts happen in a sync, which reports them. Exits can happen at any time.
    const unsubscribe = this.#options.runtime.subscribe(({ type, pod }) => {
      const isEnd = type === ContainerEventType.CONTAINER_STOPPED_EVENT;
      if (isEnd && this.#pods.has(pod.uid)) this.#queue.add(pod.uid);
    });
    try {
      await Promise.all([
        this.#watcher.run(signal),
        this.#queue.run(signal, WORKERS, (uid) => this.#sync(uid, signal)),
      ]);
    } finally {
      unsubscribe();
      await Promise.all(this.#stops);
    }
  }

  #replace(pods: KubeObject[]): void {
    const listed = new Set(pods.map(({ metadata }) => metadata.uid));
    for (const uid of [...this.#pods.keys()]) if (!listed.has(uid)) this.#delete(uid);
    for (const pod of pods) this.#upsert(pod);
  }

  #upsert(pod: KubeObject): void {
    const { uid, namespace, name } = pod.metadata;
    if (uid === undefined) return;
    if (!this.#pods.has(uid) && this.#pods.size >= MOST_PODS) {
      this.#options.log.warn({ pod: { namespace, name }, limit: MOST_PODS }, "too many pods, one is not run");
      return;
    }
    this.#pods.set(uid, pod);
    this.#queue.add(uid);
  }

  #delete(uid: string | undefined): void {
    if (uid !== undefined && this.#pods.delete(uid)) this.#queue.add(uid);
  }

  async #sync(uid: string, signal: AbortSignal): Promise<void> {
    const pod = this.#pods.get(uid);
    if (pod === undefined) {
      this.#stopping.delete(uid);
      this.#runs.remove(uid);
    } else if (pod.metadata.deletionTimestamp !== undefined) {
      await this.#end(uid, pod, signal);
    } else if (!isFinished(pod)) {
      this.#keepRunning(uid, pod);
      this.#endDue(uid, pod);
      await this.#report(uid, pod, signal);
    }
  }

  #keepRunning(uid: string, pod: JsonPod): void {
    if (!this.#runs.isReady(uid)) this.#runs.start(pod);
    const running = new Set(this.#runs.running(uid));
    for (const container of this.#runs.containers(uid)) {
      if (running.has(container) || !restarts(pod, container)) continue;
      const due = millisecondsOf(container.finishedAt) + RESTART_DELAY_MS - this.#options.clock.now();
      // A longer wait is that of a clock that was set back.
      if (due > 0 && due <= RESTART_DELAY_MS) this.#queue.addAfter(uid, due);
      else this.#runs.restart(container, pod);
    }
  }

  #endDue(uid: string, pod: JsonPod): void {
    const ending = endingOf(pod);
    if (!ending) return;
    const { runtime, clock } = this.#options;
    for (const { id, startedAt } of this.#runs.running(uid)) {
      const due = millisecondsOf(startedAt) + ending.afterMs - clock.now();
      if (due > 0) this.#queue.addAfter(uid, due);
      else runtime.exit(id, ending.exitCode);
    }
  }

  async #end(uid: string, pod: JsonPod, signal: AbortSignal): Promise<void> {
    const grace = pod.metadata.deletionGracePeriodSeconds ?? DEFAULT_GRACE_SECONDS;
    if (this.#runs.running(uid).length > 0) {
      // A second deletion can only shorten the grace period.
      if (grace < (this.#stopping.get(uid) ?? Number.POSITIVE_INFINITY)) this.#stop(uid, grace, signal);
      return;
    }
    const containers = this.#runs.containers(uid);
    const endedAt = Math.max(0, ...containers.map(({ finishedAt }) => millisecondsOf(finishedAt)));
    if (containers.length > 0) await this.#report(uid, pod, signal);
    const wait = endedAt + CONFIRM_DELAY_MS - this.#options.clock.now();
    if (wait > 0 && wait <= CONFIRM_DELAY_MS) this.#queue.addAfter(uid, wait);
    else await this.#confirm(uid, pod, signal);
  }

  // Runs in the background, because it lasts for the grace period. The exits of containers add the pod to the queue
  // again.
  #stop(uid: string, grace: number, signal: AbortSignal): void {
    this.#stopping.set(uid, grace);
    const stop = this.#runs
      .stop(uid, grace, signal)
      .catch((error: unknown) => {
        if (signal.aborted) return;
        this.#options.log.warn({ err: error, uid }, "containers can't be stopped, trying again");
        this.#stopping.delete(uid);
        this.#queue.addRateLimited(uid);
      })
      .finally(() => this.#stops.delete(stop));
    this.#stops.add(stop);
  }

  async #confirm(uid: string, { metadata }: JsonPod, signal: AbortSignal): Promise<void> {
    const { name = "", namespace = "" } = metadata;
    try {
      await this.#options.client.delete(podResource, name, {
        namespace,
        gracePeriodSeconds: 0,
        preconditions: { uid },
        signal,
      });
    } catch (error) {
      // Already deleted, or another pod has its name. The watch reports it.
      if (codeOf(error) !== "notFound" && codeOf(error) !== "conflict") throw error;
    }
  }

  async #report(uid: string, pod: JsonPod, signal: AbortSignal): Promise<void> {
    const { client, clock } = this.#options;
    const { hostIP = "127.0.0.1" } = this.#options;
    const containers = this.#runs.containers(uid);
    const wanted = podStatus(pod, this.#runs.sandbox(uid), containers, hostIP, clock.now());
    const status = changedStatus(pod, wanted);
    if (status === undefined) return;
    const { name = "", namespace = "", resourceVersion } = pod.metadata;
    try {
      await client.mergePatch(
        podResource,
        name,
        { metadata: { uid, resourceVersion }, status },
        { namespace, subresource: "status", signal },
      );
    } catch (error) {
      // Changed or deleted meanwhile. The watch reports it and the pod is synced again.
      if (codeOf(error) !== "notFound" && codeOf(error) !== "conflict") throw error;
    }
  }
}
