interface Waiting {
  rank: number;
  grant: () => void;
}

/** A bound on how much runs at once. Lower ranks go first, so that those who fail again and again wait for newcomers. */
export class Slots {
  #free: number;
  readonly #waiting: Waiting[] = [];

  constructor(count: number) {
    this.#free = count;
  }

  /** Runs `work` in a slot; rejects with the signal's reason when aborted while it waits. */
  async run<T>(rank: number, signal: AbortSignal, work: () => Promise<T>): Promise<T> {
    await this.#take(rank, signal);
    try {
      return await work();
    } finally {
      this.#give();
    }
  }

  #take(rank: number, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    if (this.#free > 0) {
      this.#free--;
      return Promise.resolve();
    }
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

  #give(): void {
    const next = this.#waiting.shift();
    if (next) next.grant();
    else this.#free++;
  }
}
