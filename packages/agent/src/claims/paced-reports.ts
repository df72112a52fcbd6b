import type { Clock, Timer } from "@nodekeeper/core/lib";

export interface PacedReportsOptions {
  /** Handles a report. Errors that it throws are passed to `onError`. */
  take: (report: Uint8Array) => void;
  onError: (error: unknown) => void;
  clock: Clock;
}

const INTERVAL_MS = 1_000;

/**
 * Rate-limits a driver's reports: passes the first at once, then at most one per second, the most recent. A report that
 * equals the previous one byte for byte is skipped.
 */
export class PacedReports {
  readonly #options: PacedReportsOptions;
  #last: Uint8Array | undefined;
  #waiting: Uint8Array | undefined;
  #timer: Timer | undefined;

  constructor(options: PacedReportsOptions) {
    this.#options = options;
  }

  add(report: Uint8Array): void {
    if (this.#last && Buffer.compare(this.#last, report) === 0) return;
    this.#last = report;
    this.#waiting = report;
    if (!this.#timer) this.#pass();
  }

  /** Passes the pending report. No other follows. */
  end(): void {
    this.#timer?.cancel();
    this.#take();
  }

  #pass(): void {
    const isEmpty = !this.#waiting;
    this.#timer = isEmpty ? undefined : this.#options.clock.after(INTERVAL_MS, () => this.#pass());
    this.#take();
  }

  #take(): void {
    const report = this.#waiting;
    this.#waiting = undefined;
    if (!report) return;
    try {
      this.#options.take(report);
    } catch (error) {
      this.#options.onError(error);
    }
  }
}
