import { type Clock, type Logger, messageOf, type Timer } from "@nodekeeper/core/lib";
import type { ReporterStore, StoredContent } from "../state/index.ts";
import type { ReportingMetrics } from "./metrics.ts";

// Contents are written immediately before they are published, and otherwise after this delay at the latest.
const MAX_DELAY_MS = 1_000;
const RETRY_MS = 5_000;

/** Collects changed contents and writes them in one transaction. A failed write is logged and retried every 5 s. */
export class Checkpoint {
  readonly #store: ReporterStore;
  readonly #clock: Clock;
  readonly #log: Logger;
  readonly #metrics: ReportingMetrics;
  readonly #changed = new Map<string, StoredContent>();
  readonly #dropped = new Set<string>();
  #timer: Timer | undefined;
  #closed = false;
  /** Error of the last write; undefined if it succeeded. */
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
    this.#arm(MAX_DELAY_MS);
  }

  drop(plugin: string): void {
    this.#changed.delete(plugin);
    this.#dropped.add(plugin);
    this.#arm(MAX_DELAY_MS);
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
        this.#log.error({ err: error }, "failed to write reporter checkpoint, retrying");
      this.lastError = messageOf(error);
      this.#arm(RETRY_MS);
      return;
    }
    if (this.lastError !== undefined) this.#log.info({}, "reporter checkpoint written again after failures");
    this.lastError = undefined;
    this.#changed.clear();
    this.#dropped.clear();
  }

  /** Writes a last time, without retries. */
  close(): void {
    this.#closed = true;
    this.flush();
  }

  #arm(ms: number): void {
    if (this.#closed) return;
    this.#timer ??= this.#clock.after(ms, () => this.flush());
  }
}
