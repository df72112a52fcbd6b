import { WorkQueue } from "@nodekeeper/core/lib";
import type { LifecycleContext } from "./context.ts";
import type { RelistPacing } from "./pacing.ts";

/**
 * Pods to read individually, by UID, in the order of their requests. Readings of the same pod do not overlap.
 */
export class PodQueue {
  readonly #context: LifecycleContext;
  readonly #pacing: RelistPacing;
  readonly #queue: WorkQueue;
  /** When each queued pod was last requested, monotonic milliseconds. */
  readonly #requestedAt = new Map<string, number>();

  constructor(context: LifecycleContext, pacing: RelistPacing) {
    this.#context = context;
    this.#pacing = pacing;
    const { clock, log } = context;
    this.#queue = new WorkQueue({ name: "lifecycle", clock, log, maxKeys: Number.POSITIVE_INFINITY });
  }

  /**
   * Requests a reading. A queued pod keeps its position. A pod that is being read is read again afterwards.
   * If too many pods are queued, triggers a relist instead.
   */
  add(podUid: string): void {
    const { settings, metrics, clock } = this.#context;
    if (this.#queue.length >= settings.requestLimit && !this.#requestedAt.has(podUid)) {
      metrics.requestsRefused.inc();
      this.#pacing.soon();
      return;
    }
    this.#requestedAt.set(podUid, clock.monotonic());
    this.#queue.add(podUid);
  }

  /** Requests a reading in `ms` milliseconds. */
  addAfter(podUid: string, ms: number): void {
    this.#queue.addAfter(podUid, ms);
  }

  /** Returns whether a reading requested by `addAfter` is not due yet. */
  isWaiting(podUid: string): boolean {
    return this.#queue.isWaiting(podUid);
  }

  /** Cancels a reading requested by `addAfter`, unless it is due. */
  cancel(podUid: string): void {
    this.#queue.cancel(podUid);
  }

  /**
   * Drops requests made before the start of a list of all pods, which satisfies them.
   * @param startedAt start of the list, monotonic milliseconds
   */
  listed(startedAt: number): void {
    for (const [podUid, requestedAt] of this.#requestedAt) {
      if (requestedAt >= startedAt) continue;
      this.#requestedAt.delete(podUid);
      if (this.#queue.drop(podUid)) this.#context.metrics.requestsAnswered.inc();
    }
  }

  /** Passes pods to `read` until the signal aborts. */
  async run(
    signal: AbortSignal,
    read: (podUid: string, signal: AbortSignal) => Promise<void>,
  ): Promise<void> {
    await this.#queue.run(signal, this.#context.settings.maxInspections, (podUid) => {
      this.#requestedAt.delete(podUid);
      return read(podUid, signal);
    });
  }
}
