/** Requests to read single pods, each at most once, first come first served. */
export class RequestQueue {
  readonly #requests = new Map<string, number>();
  readonly #limit: number;

  /** @param limit how many may wait; a reading of all pods stands in for more */
  constructor(limit: number) {
    this.#limit = limit;
  }

  get size(): number {
    return this.#requests.size;
  }

  /** Gives false when the queue is full. A pod that waits already goes on waiting, with the newer time. */
  add(podUid: string, time: number): boolean {
    if (!this.#requests.has(podUid) && this.#requests.size >= this.#limit) return false;
    this.#requests.set(podUid, time);
    return true;
  }

  /** The first pod that is not in `busy`: one that is being read waits for the end of that. */
  take(busy: ReadonlySet<string>): string | undefined {
    for (const podUid of this.#requests.keys()) {
      if (busy.has(podUid)) continue;
      this.#requests.delete(podUid);
      return podUid;
    }
    return undefined;
  }

  /** Drops requests made before `time`: a reading of all pods that began then answers them. Gives how many. */
  dropBefore(time: number): number {
    let dropped = 0;
    for (const [podUid, requestedAt] of this.#requests) {
      if (requestedAt >= time) continue;
      this.#requests.delete(podUid);
      dropped++;
    }
    return dropped;
  }
}
