import type { Clock, Timer } from "@nodekeeper/core/lib";

export interface PacedReportsOptions {
  /** Takes a report; what it throws reaches `onError`. */
  take: (report: Uint8Array) => void;
  onError: (error: unknown) => void;
  clock: Clock;
}

const INTERVAL_MS = 1_000;

/**
 * Passes on a driver's reports: the first at once, later ones at most once a second, the newest of what came meanwhile.
 * One that is byte for byte the one before is skipped.
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

  /** No report comes any more: passes on the one that waits. */
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
