/** Lets at most `limit` pieces of work run at once; the rest wait in order of arrival. */
export class Limiter {
  readonly #limit: number;
  readonly #waiting = new Set<() => void>();
  #running = 0;

  constructor(limit: number) {
    this.#limit = limit;
  }

  /** Runs `work` when it is its turn. Throws the signal's reason, and leaves the queue, when it aborts before that. */
  async run<T>(signal: AbortSignal, work: () => Promise<T>): Promise<T> {
    signal.throwIfAborted();
    if (this.#running < this.#limit) this.#running++;
    else await this.#turn(signal);
    try {
      return await work();
    } finally {
      this.#handOver();
    }
  }

  // Resolves with the place of a piece of work that ended.
  #turn(signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const begin = () => {
        signal.removeEventListener("abort", onAbort);
        resolve();
      };
      const onAbort = () => {
        this.#waiting.delete(begin);
        reject(signal.reason);
      };
      signal.addEventListener("abort", onAbort, { once: true });
      this.#waiting.add(begin);
    });
  }

  #handOver(): void {
    const [next] = this.#waiting;
    if (!next) {
      this.#running--;
      return;
    }
    this.#waiting.delete(next);
    next();
  }
}
