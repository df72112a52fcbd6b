export interface PodRequestsOptions {
  /** How many pods may wait. */
  limit: number;
  /** How many may be read at once. */
  concurrency: number;
  /** Reads a pod; never rejects. */
  read: (podUid: string, signal: AbortSignal) => Promise<void>;
}

/** Requests to read single pods: each pod once at a time, first come first served. */
export class PodRequests {
  readonly #options: PodRequestsOptions;
  // When each was asked for.
  readonly #waiting = new Map<string, number>();
  readonly #reading = new Set<string>();
  #signal: AbortSignal | undefined;

  constructor(options: PodRequestsOptions) {
    this.#options = options;
  }

  /** From now on pods are read, until the signal aborts. */
  open(signal: AbortSignal): void {
    this.#signal = signal;
    this.#pump();
  }

  /**
   * Gives false when too many wait. One that waits already goes on waiting, with the newer time; one that is being
   * read is read again after that.
   */
  add(podUid: string, time: number): boolean {
    if (!this.#waiting.has(podUid) && this.#waiting.size >= this.#options.limit) return false;
    this.#waiting.set(podUid, time);
    this.#pump();
    return true;
  }

  /** Drops requests made before `time`: a reading of all pods that began then answers them. Gives how many. */
  dropBefore(time: number): number {
    let dropped = 0;
    for (const [podUid, requestedAt] of this.#waiting) {
      if (requestedAt >= time) continue;
      this.#waiting.delete(podUid);
      dropped++;
    }
    return dropped;
  }

  #pump(): void {
    const { concurrency, read } = this.#options;
    const signal = this.#signal;
    if (!signal) return;
    for (const podUid of this.#waiting.keys()) {
      if (signal.aborted || this.#reading.size >= concurrency) return;
      // Its turn comes when it has been read: waiting here it would take the place of others.
      if (this.#reading.has(podUid)) continue;
      this.#waiting.delete(podUid);
      this.#reading.add(podUid);
      read(podUid, signal).finally(() => {
        this.#reading.delete(podUid);
        this.#pump();
      });
    }
  }
}
