import { NodekeeperError } from "./errors.ts";

interface Waiting {
  rank: number;
  grant: () => void;
}

export interface SemaphoreOptions {
  /** How much may run at once; at least 1. */
  permits: number;
  /** How much may wait for a permit. What comes beyond that is refused. Default: no bound. */
  maxWaiting?: number;
}

/** A bound on how much runs at once. Waiting work starts in the order of its rank, lowest first, then of its arrival. */
export class Semaphore {
  readonly #maxWaiting: number;
  readonly #waiting: Waiting[] = [];
  #free: number;

  constructor({ permits, maxWaiting = Number.POSITIVE_INFINITY }: SemaphoreOptions) {
    this.#free = permits;
    this.#maxWaiting = maxWaiting;
  }

  /** How much waits for a permit now. */
  get waiting(): number {
    return this.#waiting.length;
  }

  /**
   * Runs `work` once there is a permit. Rejects with the signal's reason when aborted while it waits, and with
   * `throttled` when too much waits already.
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
    if (this.#free > 0) {
      this.#free--;
      return Promise.resolve();
    }
    if (this.#waiting.length >= this.#maxWaiting)
      throw new NodekeeperError("throttled", "too many requests at a time");
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
    const next = this.#waiting.shift();
    if (next) next.grant();
    else this.#free++;
  }
}
