import { RepairPace, retryPolicies, WorkQueue } from "@nodekeeper/core/lib";
import type { EvictionContext } from "../context.ts";

// The queue's only key.
const NODE = "node";

/**
 * Schedules writes to the Node. A failed write is retried after its backoff or the time in Retry-After, even if other
 * content is desired in between. Content that another client removed or changed is restored with an increasing delay.
 */
export class NodeWrites {
  readonly #queue: WorkQueue;
  readonly #repairs: RepairPace;
  /** Signature of the desired content that the Node last had. A later difference was caused by another client. */
  #reconciledWith: string | undefined;
  #isRepairDue = false;

  constructor(
    name: string,
    { clock, log, queueMetrics: metrics }: Pick<EvictionContext, "clock" | "log" | "queueMetrics">,
  ) {
    this.#repairs = new RepairPace(clock, retryPolicies.taintRepair);
    this.#queue = new WorkQueue({ name, clock, log, backoff: retryPolicies.nodeTaints, metrics });
  }

  async run(signal: AbortSignal, write: (signal: AbortSignal) => Promise<void>): Promise<void> {
    await this.#queue.run(signal, 1, async (_key, queueSignal) => {
      this.#isRepairDue = false;
      await write(queueSignal);
    });
  }

  /** The number of repairs if another client keeps changing the content; otherwise undefined. */
  get conflicts(): number | undefined {
    return this.#repairs.conflicts;
  }

  /** Records that the Node has the desired content. */
  reconciled(signature: string): void {
    this.#reconciledWith = signature;
  }

  /**
   * Schedules a write, because the Node does not have the desired content.
   * @param delayMs delay of content that the Node did not have before
   */
  schedule(signature: string, delayMs = 0): void {
    if (this.#queue.requeues(NODE) > 0) return;
    if (signature !== this.#reconciledWith) {
      this.#queue.addAfter(NODE, delayMs);
      return;
    }
    if (this.#isRepairDue) return;
    this.#isRepairDue = true;
    this.#queue.addAfter(NODE, this.#repairs.next());
  }

  /** Resets the backoff after a write. */
  succeeded(): void {
    this.#queue.forget(NODE);
  }

  /** Forgets the content that the Node had, and the backoff. */
  suspend(): void {
    this.#reconciledWith = undefined;
    this.#queue.forget(NODE);
  }
}
