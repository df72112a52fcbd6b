import { NodekeeperError } from "@nodekeeper/api/errors";

interface Waiting {
  rank: number;
  grant: () => void;
}

interface SemaphoreOptions {
  /** Maximum number of concurrent runs; at least 1. */
  permits: number;
  /** Maximum number of waiting runs. Further ones are rejected. Default: unlimited. */
  maxWaiting?: number;
}

/** Bounds concurrency. Waiting work starts by rank, lowest first, then in order of arrival. */
export class Semaphore {
  readonly #maxWaiting: number;
  readonly #waiting: Waiting[] = [];
  #permits: number;
  #running = 0;

  constructor({ permits, maxWaiting = Number.POSITIVE_INFINITY }: SemaphoreOptions) {
    this.#permits = permits;
    this.#maxWaiting = maxWaiting;
  }

  /** Maximum number of concurrent runs. */
  get permits(): number {
    return this.#permits;
  }

  /** Changes the maximum number of concurrent runs. Runs in progress are not stopped. */
  resize(permits: number): void {
    this.#permits = permits;
    this.#grant();
  }

  get running(): number {
    return this.#running;
  }

  /** Number of runs that wait for a permit. */
  get waiting(): number {
    return this.#waiting.length;
  }

  /**
   * Runs `work` when a permit is free. Rejects with the signal's reason if the signal aborts while waiting, and with
   * `throttled` if `maxWaiting` runs are already waiting.
   */
  async run<T>(signal: AbortSignal, work: () => Promise<T> | T, rank = 0): Promise<T> {
    await this.#acquire(signal, rank);
    try {
      return await work();
    } finally {
      this.#release();
    }
  }

  #acquire(signal: AbortSignal, rank: number): Promise<void> {
    signal.throwIfAborted();
    if (this.#running < this.#permits) {
      this.#running++;
      return Promise.resolve();
    }
    if (this.#waiting.length >= this.#maxWaiting)
      throw new NodekeeperError("throttled", "too many concurrent requests");
    return new Promise((resolve, reject) => {
      const onAbort = () => {
        this.#waiting.splice(this.#waiting.indexOf(waiting), 1);
        reject(signal.reason);
      };
      const grant = () => {
        signal.removeEventListener("abort", onAbort);
        resolve();
      };
      const waiting = { rank, grant };
      const after = this.#waiting.findIndex((other) => other.rank > rank);
      this.#waiting.splice(after < 0 ? this.#waiting.length : after, 0, waiting);
      signal.addEventListener("abort", onAbort, { once: true });
    });
  }

  #release(): void {
    this.#running--;
    this.#grant();
  }

  #grant(): void {
    while (this.#running < this.#permits) {
      const next = this.#waiting.shift();
      if (!next) return;
      this.#running++;
      next.grant();
    }
  }
}
