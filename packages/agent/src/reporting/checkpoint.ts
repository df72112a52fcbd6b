import { type Clock, type Logger, type LoopTurns, messageOf, type Timer } from "@nodekeeper/core/lib";
import type { ReporterStore, StoredContent } from "../state/index.ts";
import type { ReportingMetrics } from "./metrics.ts";

// Contents are written immediately before they are published, and otherwise after this delay at the latest.
const MAX_DELAY_MS = 1_000;
const RETRY_MS = 5_000;

// Contents of up to this size are written in one transaction; a larger content is written in its own transaction.
const MAX_TRANSACTION_BYTES = 256 * 1024;

export interface CheckpointOptions {
  store: ReporterStore;
  clock: Clock;
  turns: LoopTurns;
  log: Logger;
  metrics: ReportingMetrics;
}

/** Collects changed contents and writes them together. A failed write is logged and retried every 5 s. */
export class Checkpoint {
  readonly #store: ReporterStore;
  readonly #clock: Clock;
  readonly #turns: LoopTurns;
  readonly #log: Logger;
  readonly #metrics: ReportingMetrics;
  readonly #changed = new Map<string, StoredContent>();
  readonly #dropped = new Set<string>();
  #timer: Timer | undefined;
  #closed = false;
  /** Error of the last write; undefined if it succeeded. */
  lastError: string | undefined;

  constructor({ store, clock, turns, log, metrics }: CheckpointOptions) {
    this.#store = store;
    this.#clock = clock;
    this.#turns = turns;
    this.#log = log;
    this.#metrics = metrics;
  }

  load(): StoredContent[] {
    return this.#store.contents();
  }

  save(content: StoredContent): void {
    this.#dropped.delete(content.plugin);
    this.#changed.set(content.plugin, content);
    this.#arm(MAX_DELAY_MS);
  }

  drop(plugin: string): void {
    this.#changed.delete(plugin);
    this.#dropped.add(plugin);
    this.#arm(MAX_DELAY_MS);
  }

  /** Writes all changed contents, large amounts over several turns of the event loop. Never rejects. */
  async flush(): Promise<void> {
    while (this.#isDirty && this.#writeSome(MAX_TRANSACTION_BYTES) && this.#isDirty) await this.#turns.pass();
  }

  /** Writes a last time, without retries. */
  close(): void {
    this.#closed = true;
    if (this.#isDirty) this.#writeSome(Number.POSITIVE_INFINITY);
  }

  get #isDirty(): boolean {
    return this.#changed.size > 0 || this.#dropped.size > 0;
  }

  // Answers whether it was written.
  #writeSome(mostBytes: number): boolean {
    this.#timer?.cancel();
    this.#timer = undefined;
    const some: StoredContent[] = [];
    let bytes = 0;
    for (const stored of this.#changed.values()) {
      bytes += stored.content.length;
      if (some.length > 0 && bytes > mostBytes) break;
      some.push(stored);
    }
    try {
      this.#store.saveContents(some, [...this.#dropped]);
    } catch (error) {
      this.#metrics.checkpointFailures.inc();
      if (this.lastError === undefined)
        this.#log.error({ errorId: "NK1105", err: error }, "failed to write reporter checkpoint, retrying");
      this.lastError = messageOf(error);
      this.#arm(RETRY_MS);
      return false;
    }
    if (this.lastError !== undefined) this.#log.info({}, "reporter checkpoint written again after failures");
    this.lastError = undefined;
    for (const { plugin } of some) this.#changed.delete(plugin);
    this.#dropped.clear();
    return true;
  }

  #arm(ms: number): void {
    if (this.#closed) return;
    this.#timer ??= this.#clock.after(ms, () => void this.flush());
  }
}
