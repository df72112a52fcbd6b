export interface PodRequestsOptions {
  /** Maximum number of queued pods. */
  limit: number;
  /** Maximum number of concurrent readings. */
  concurrency: number;
  /** Reads a pod; never rejects. */
  read: (podUid: string, signal: AbortSignal) => Promise<void>;
}

/** Queue of requests to read single pods: first in, first out; readings of one pod do not overlap. */
export class PodRequests {
  readonly #options: PodRequestsOptions;
  // Time of each request.
  readonly #waiting = new Map<string, number>();
  readonly #reading = new Set<string>();
  #signal: AbortSignal | undefined;

  constructor(options: PodRequestsOptions) {
    this.#options = options;
  }

  /** Starts reading pods until the signal aborts. */
  open(signal: AbortSignal): void {
    this.#signal = signal;
    this.#pump();
  }

  /**
   * Requests a reading. Returns false if the queue is full. A queued pod keeps its position and gets the newer time; a
   * pod that is being read is read again afterwards.
   */
  add(podUid: string, time: number): boolean {
    if (!this.#waiting.has(podUid) && this.#waiting.size >= this.#options.limit) return false;
    this.#waiting.set(podUid, time);
    this.#pump();
    return true;
  }

  /** Drops requests made before `time`, the start of a reading of all pods. Returns their number. */
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
      // Deferred until its current reading ends; waiting here would occupy a slot of other pods.
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
