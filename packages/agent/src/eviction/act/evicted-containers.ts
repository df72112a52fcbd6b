import type { Clock, Logger, Timer } from "@nodekeeper/core/lib";
import type { EventSource, PodLifecycleEvent, PodStatusReader } from "../../lifecycle/index.ts";
import type { PodReference } from "../decide/pods.ts";
import type { EvictionStep } from "../parts.ts";

export interface EvictedContainersOptions {
  events: EventSource;
  statuses: Pick<PodStatusReader, "get">;
  /** How long to wait for the containers of a pod that is already deleted at the API server, milliseconds. */
  marginMs: () => number;
  clock: Clock;
  log: Logger;
}

/**
 * Tracks the containers of evicted pods. A force-deleted pod is removed from the API server before its containers exit:
 * containers that are still running then are recorded as steps of the eviction, and logged when the margin is over.
 * Exit codes are recorded by `PodHistory`.
 */
export class EvictedContainers {
  readonly #options: EvictedContainersOptions;
  /** By UID; the timer runs where the pod is deleted and its containers are still running. */
  readonly #followed = new Map<string, Timer | undefined>();
  #steps: EvictionStep[] = [];

  constructor(options: EvictedContainersOptions) {
    this.#options = options;
  }

  /** Reads the event log until the signal aborts. */
  async run(signal: AbortSignal): Promise<void> {
    const { events } = this.#options;
    try {
      for await (const item of events.read({ after: events.position }, signal)) {
        if (item.kind === "event") this.#onEvent(item.event);
      }
    } finally {
      for (const timer of this.#followed.values()) timer?.cancel();
      this.#followed.clear();
    }
  }

  /** Starts to track a pod: its eviction starts. */
  follow(uid: string): void {
    if (!this.#followed.has(uid)) this.#followed.set(uid, undefined);
  }

  /** Stops tracking a pod: its eviction failed or was withdrawn. */
  forget(uid: string): void {
    this.#followed.get(uid)?.cancel();
    this.#followed.delete(uid);
  }

  /** The pod is deleted at the API server: waits up to `marginMs` for containers that are still running. */
  podDeleted({ uid, namespace, name }: PodReference): void {
    const { clock, log, marginMs } = this.#options;
    this.forget(uid);
    const running = this.running(uid);
    if (running.length === 0) return;
    this.#step(uid, `still running on the node: ${running.join(", ")}`);
    const timer = clock.after(marginMs(), () => {
      this.#followed.delete(uid);
      const left = this.running(uid);
      if (left.length === 0) return;
      this.#step(uid, `still running on the node, no longer waited for: ${left.join(", ")}`);
      log.warn(
        { errorId: "NK1610", pod: { namespace, name }, running: left },
        "containers of an evicted pod are still running",
      );
    });
    this.#followed.set(uid, timer);
  }

  /** Names of a pod's containers that were running at the last relist. */
  running(uid: string): string[] {
    const { containers } = this.#options.statuses.get(uid).status;
    return containers.flatMap(({ name, state }) => (state === "running" ? [name] : []));
  }

  /** Returns and clears the steps since the last call. */
  takeSteps(): EvictionStep[] {
    const steps = this.#steps;
    this.#steps = [];
    return steps;
  }

  // The sandbox stops last: no container of the pod is running after that.
  #onEvent({ type, pod: { uid }, container }: PodLifecycleEvent): void {
    if (type !== "ContainerDied" || container?.kind !== "sandbox") return;
    if (this.#followed.get(uid) !== undefined) this.forget(uid);
  }

  #step(uid: string, message: string): void {
    this.#steps.push({ uid, at: this.#options.clock.now(), message });
  }
}
