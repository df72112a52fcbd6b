import { Refusal } from "../../api.ts";

const RETRY_MS = 3_000;

interface OneReadOptions {
  /** Wall-clock time, milliseconds. */
  now(): number;
  /** Called when a read has ended, unless it was canceled. */
  onChange(): void;
}

/** Runs one read of the history at a time. A read can be canceled. Keeps the error of the last one, if it failed. */
export class OneRead<Wanted> {
  /** Why the last read failed. An `Unreachable` is retried. */
  error: unknown;
  readonly #options: OneReadOptions;
  #current: { wanted: Wanted; stop: AbortController } | undefined;
  #failedAt = Number.NEGATIVE_INFINITY;

  constructor(options: OneReadOptions) {
    this.#options = options;
  }

  /** What is being read. Undefined if nothing is. */
  get wanted(): Wanted | undefined {
    return this.#current?.wanted;
  }

  /** Whether a new read may start: not if the part is disabled, and not within three seconds of a failure. */
  get mayStart(): boolean {
    const isOff = this.error instanceof Refusal && this.error.isNotFound;
    return !isOff && this.#options.now() - this.#failedAt >= RETRY_MS;
  }

  /** Starts a read, canceling the current one. `read` must end without effect once its signal aborts. */
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
