import type { PodReference } from "@nodekeeper/api/decide";
import { EvictedPodNotTerminating } from "@nodekeeper/api/errors";
import type { Timer } from "@nodekeeper/core/lib";
import type { EventSource, PodLifecycleEvent, PodStatusReader } from "../../lifecycle/index.ts";
import type { EvictionContext } from "../context.ts";
import type { EvictionLedger } from "../ledger.ts";

export interface EvictedContainersOptions extends Pick<EvictionContext, "policy" | "clock" | "log"> {
  events: EventSource;
  statuses: Pick<PodStatusReader, "get">;
  ledger: Pick<EvictionLedger, "step">;
}

/**
 * Tracks the containers of evicted pods. A force-deleted pod is removed from the API server before its containers exit.
 * Containers still running at that time are recorded as steps of the eviction, and logged if they outlast the margin.
 * `PodHistory` records exit codes.
 */
export class EvictedContainers {
  readonly #options: EvictedContainersOptions;
  /** By UID. The timer runs if the pod is deleted and its containers are still running. */
  readonly #followed = new Map<string, Timer | undefined>();

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

  /** Starts to track a pod when its eviction starts. */
  follow(uid: string): void {
    if (!this.#followed.has(uid)) this.#followed.set(uid, undefined);
  }

  /** Stops tracking a pod whose eviction failed or was withdrawn. */
  forget(uid: string): void {
    this.#followed.get(uid)?.cancel();
    this.#followed.delete(uid);
  }

  /**
   * Records containers that are still running when their pod is deleted from the API server. If some are still running
   * after the release margin, records them again and logs a warning.
   */
  podDeleted({ uid, namespace, name }: PodReference): void {
    const { clock, log, policy, ledger } = this.#options;
    this.forget(uid);
    const running = this.running(uid);
    if (running.length === 0) return;
    ledger.step(uid, `still running on the node: ${running.join(", ")}`);
    const timer = clock.after(policy().releaseMarginMs, () => {
      this.#followed.delete(uid);
      const left = this.running(uid);
      if (left.length === 0) return;
      ledger.step(uid, `still running on the node, no longer waited for: ${left.join(", ")}`);
      log.warn(
        { errorId: EvictedPodNotTerminating.id, pod: { namespace, name }, running: left },
        "containers of an evicted pod are still running",
      );
    });
    this.#followed.set(uid, timer);
  }

  /** Returns the names of a pod's containers that were running at the last relist. */
  running(uid: string): string[] {
    const { containers } = this.#options.statuses.get(uid).status;
    return containers.flatMap(({ name, state }) => (state === "running" ? [name] : []));
  }

  // The sandbox stops last. No container of the pod runs after that.
  #onEvent({ type, pod: { uid }, container }: PodLifecycleEvent): void {
    if (type !== "ContainerDied" || container?.kind !== "sandbox") return;
    if (this.#followed.get(uid) !== undefined) this.forget(uid);
  }
}
