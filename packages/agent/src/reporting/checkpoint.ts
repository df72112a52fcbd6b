import { type Clock, type Logger, messageOf, type Timer } from "@nodekeeper/core/lib";
import type { ReporterStore, StoredContent } from "../state/index.ts";
import type { ReportingMetrics } from "./metrics.ts";

// Written at once before a publication; what is never published waits no longer than this.
const LONGEST_DELAY_MS = 1_000;
const RETRY_MS = 5_000;

/** Gathers changed contents and writes them in one transaction. A failed write is reported and tried again. */
export class Checkpoint {
  readonly #store: ReporterStore;
  readonly #clock: Clock;
  readonly #log: Logger;
  readonly #metrics: ReportingMetrics;
  readonly #changed = new Map<string, StoredContent>();
  readonly #dropped = new Set<string>();
  #timer: Timer | undefined;
  #closed = false;
  /** Why the last write failed; undefined after a good one. */
  lastError: string | undefined;

  constructor(store: ReporterStore, clock: Clock, log: Logger, metrics: ReportingMetrics) {
    this.#store = store;
    this.#clock = clock;
    this.#log = log;
    this.#metrics = metrics;
  }

  load(): StoredContent[] {
    return this.#store.contents();
  }

  save(content: StoredContent): void {
    this.#dropped.delete(content.plugin);
    this.#changed.set(content.plugin, content);
    this.#arm(LONGEST_DELAY_MS);
  }

  drop(plugin: string): void {
    this.#changed.delete(plugin);
    this.#dropped.add(plugin);
    this.#arm(LONGEST_DELAY_MS);
  }

  flush(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
    if (this.#changed.size === 0 && this.#dropped.size === 0) return;
    try {
      this.#store.saveContents([...this.#changed.values()], [...this.#dropped]);
    } catch (error) {
      this.#metrics.checkpointFailures.inc();
      if (this.lastError === undefined)
        this.#log.error({ err: error }, "reporter checkpoint can't be written, will be tried again");
      this.lastError = messageOf(error);
      this.#arm(RETRY_MS);
      return;
    }
    if (this.lastError !== undefined) this.#log.info({}, "reporter checkpoint is written again");
    this.lastError = undefined;
    this.#changed.clear();
    this.#dropped.clear();
  }

  /** The last write; nothing is tried again after it. */
  close(): void {
    this.#closed = true;
    this.flush();
  }

  #arm(ms: number): void {
    if (this.#closed) return;
    this.#timer ??= this.#clock.after(ms, () => this.flush());
  }
}
