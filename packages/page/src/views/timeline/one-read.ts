import { Refusal } from "../../api.ts";

const RETRY_MS = 3_000;

interface OneReadOptions {
  /** Wall milliseconds. */
  now(): number;
  /** Called when a read has ended, and not where it was cancelled. */
  onChange(): void;
}

/** One read of the past at a time, which can be cancelled, and how the last one ended. */
export class OneRead<Wanted> {
  /** Why the last one failed: an `Unreachable` is tried again. */
  error: unknown;
  readonly #options: OneReadOptions;
  #current: { wanted: Wanted; stop: AbortController } | undefined;
  #failedAt = Number.NEGATIVE_INFINITY;

  constructor(options: OneReadOptions) {
    this.#options = options;
  }

  /** What is being read for; undefined where nothing is. */
  get wanted(): Wanted | undefined {
    return this.#current?.wanted;
  }

  /** Whether a new one may be answered: not where the part is off, and not within three seconds of a failure. */
  get mayStart(): boolean {
    const isOff = this.error instanceof Refusal && this.error.isNotFound;
    return !isOff && this.#options.now() - this.#failedAt >= RETRY_MS;
  }

  /** Reads in place of the one under way. `read` ends, without an effect, once its signal aborts. */
  start(wanted: Wanted, read: (signal: AbortSignal) => Promise<void>): void {
    this.cancel();
    const stop = new AbortController();
    this.#current = { wanted, stop };
    const end = (error?: unknown) => {
      if (stop.signal.aborted) return;
      this.#current = undefined;
      this.error = error;
      if (error !== undefined) this.#failedAt = this.#options.now();
      this.#options.onChange();
    };
    read(stop.signal).then(() => end(), end);
  }

  cancel(): void {
    this.#current?.stop.abort();
    this.#current = undefined;
  }
}
