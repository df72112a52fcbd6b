import type { Span } from "@nodekeeper/core/gen/opentelemetry/v1/trace.ts";
import type { ArchiveStore, QueueBounds } from "../state/index.ts";
import { fittingInto } from "./fitting.ts";
import type { LostRecords } from "./lost-records.ts";
import { unpackSpans } from "./otlp/requests.ts";
import type { SendQueue } from "./sender.ts";

export interface TraceQueueOptions {
  store: Pick<ArchiveStore, "traces" | "removeTraces" | "trimTraces">;
  /** Approximate size of the traces of `next`, in bytes. A larger one is returned alone. */
  maxBytes: number;
  bounds: QueueBounds;
  lost: LostRecords;
}

/** A trace to send. */
export interface OutgoingTrace {
  id: number;
  spans: readonly Span[];
}

const MOST_AT_ONCE = 64;

/** The traces of evictions whose logs were exported. */
export class TraceQueue implements SendQueue<OutgoingTrace> {
  readonly #options: TraceQueueOptions;
  #current: readonly OutgoingTrace[] = [];
  /** The position up to which all is done. Rows may still be stored, if they could not be removed. */
  #doneUpTo = 0;
  #removedUpTo = 0;

  constructor(options: TraceQueueOptions) {
    this.#options = options;
  }

  async next(most: number): Promise<readonly OutgoingTrace[] | undefined> {
    this.#remove();
    const { store, maxBytes } = this.#options;
    const rows = store.traces(this.#doneUpTo, Math.min(most, MOST_AT_ONCE));
    const fitting = fittingInto(maxBytes, rows, ({ spans }) => spans.length);
    this.#current = fitting.map(({ id, spans }) => ({ id, spans: unpackSpans(spans) }));
    return this.#current.length === 0 ? undefined : this.#current;
  }

  done(count: number): void {
    this.#doneUpTo = this.#current[count - 1]?.id ?? this.#doneUpTo;
    this.#remove();
  }

  trim(): void {
    const { store, bounds, lost } = this.#options;
    try {
      lost.addTraces(store.trimTraces(bounds));
    } catch {
      // On a full disk nothing is queued either.
    }
  }

  // On a full disk, the rows are removed later. Until then, an agent that starts exports them again.
  #remove(): void {
    if (this.#removedUpTo === this.#doneUpTo) return;
    try {
      this.#options.store.removeTraces(this.#doneUpTo);
      this.#removedUpTo = this.#doneUpTo;
    } catch {}
  }
}
