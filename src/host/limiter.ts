/** Lets at most `limit` pieces of work run at once; the rest wait in order of arrival. */
export class Limiter {
  readonly #limit: number;
  readonly #waiting: (() => void)[] = [];
  #running = 0;

  constructor(limit: number) {
    this.#limit = limit;
  }

  /** Runs `work` when it is its turn. Work whose signal aborted while it waited is not started. */
  async run<T>(signal: AbortSignal, work: () => Promise<T>): Promise<T> {
    if (this.#running >= this.#limit) await new Promise<void>((resolve) => this.#waiting.push(resolve));
    else this.#running++;
    try {
      signal.throwIfAborted();
      return await work();
    } finally {
      const next = this.#waiting.shift();
      // The place is handed over rather than freed, so that nobody can slip in between.
      if (next) next();
      else this.#running--;
    }
  }
}
