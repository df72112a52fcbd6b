import type { PodStatus } from "../runtime/index.ts";
import type { PodIdentity } from "./events.ts";

/** Cache entry of a pod. Times are monotonic milliseconds. */
export interface PodCacheEntry {
  /** Last status read; an empty status with the UID for a pod that the runtime does not have. */
  readonly status: PodStatus;
  /** Error of the newest inspection, if it failed; `status` is older then. */
  readonly error: Error | undefined;
  /** Start of the reading that produced this entry. */
  readonly modifiedAt: number;
  /** Start of the last reading that found the pod, changed or not. */
  readonly observedAt: number;
}

/** Read access to the cache. */
export interface PodStatusReader {
  /** The current entry of a pod; an empty status for an unknown pod. */
  get(podUid: string): PodCacheEntry;
  /**
   * Resolves with the entry of a pod once it was read after `time` (monotonic milliseconds), alone or with all pods. An
   * inspection that failed after `time` counts; the entry has its error. Rejects with the signal's reason.
   */
  getNewerThan(podUid: string, time: number, signal: AbortSignal): Promise<PodCacheEntry>;
  /** The UIDs of all pods in the cache. */
  uids(): string[];
  /** Version of the cache; changes whenever an entry is written or deleted. */
  readonly version: number;
}

interface Waiter {
  readonly time: number;
  readonly resolve: (entry: PodCacheEntry) => void;
}

/** Statuses of all pods. Only the tracker writes it; other parts use it as a PodStatusReader. */
export class PodStatusCache implements PodStatusReader {
  readonly #entries = new Map<string, PodCacheEntry>();
  readonly #waiters = new Map<string, Set<Waiter>>();
  readonly #onWait: (podUid: string) => void;
  #globalTime = Number.NEGATIVE_INFINITY;
  #waiting = 0;
  #version = 0;

  /** @param onWait called when a caller starts to wait for a pod, so that the pod is read early */
  constructor(onWait: (podUid: string) => void = () => {}) {
    this.#onWait = onWait;
  }

  /** Start of the last completed reading of all pods. */
  get globalTime(): number {
    return this.#globalTime;
  }

  get version(): number {
    return this.#version;
  }

  get size(): number {
    return this.#entries.size;
  }

  get waiting(): number {
    return this.#waiting;
  }

  /** UIDs of the pods that callers wait for. */
  waitedFor(): string[] {
    return [...this.#waiters.keys()];
  }

  uids(): string[] {
    return [...this.#entries.keys()];
  }

  has(podUid: string): boolean {
    return this.#entries.has(podUid);
  }

  get(podUid: string): PodCacheEntry {
    return this.#entries.get(podUid) ?? absent(podUid, this.#globalTime);
  }

  getNewerThan(podUid: string, time: number, signal: AbortSignal): Promise<PodCacheEntry> {
    if (signal.aborted) return Promise.reject(signal.reason);
    const entry = this.get(podUid);
    if (this.#newest(entry) > time) return Promise.resolve(entry);
    return new Promise((resolve, reject) => {
      const waiters = this.#waiters.get(podUid) ?? new Set();
      this.#waiters.set(podUid, waiters);
      const leave = () => {
        signal.removeEventListener("abort", onAbort);
        this.#waiting--;
        waiters.delete(waiter);
        if (waiters.size === 0 && this.#waiters.get(podUid) === waiters) this.#waiters.delete(podUid);
      };
      const onAbort = () => {
        leave();
        reject(signal.reason);
      };
      const waiter: Waiter = {
        time,
        resolve: (found) => {
          leave();
          resolve(found);
        },
      };
      waiters.add(waiter);
      this.#waiting++;
      signal.addEventListener("abort", onAbort, { once: true });
      this.#onWait(podUid);
    });
  }

  /** Stores the status from a reading that started at `time`. */
  set(podUid: string, status: PodStatus, time: number): void {
    this.#put(podUid, { status, error: undefined, modifiedAt: time, observedAt: time });
  }

  /**
   * Records that a reading started at `time` failed to inspect the pod. The last status is kept, or an empty one created.
   * Unknown names are empty.
   */
  fail({ uid, name, namespace }: PodIdentity, error: Error, time: number): void {
    const status = this.#entries.get(uid)?.status ?? { ...absent(uid, time).status, name, namespace };
    this.#put(uid, { status, error, modifiedAt: time, observedAt: time });
  }

  /** Records that a reading started at `time` found the pod unchanged. */
  observe(podUid: string, time: number): void {
    const entry = this.#entries.get(podUid);
    if (entry) this.#put(podUid, { ...entry, observedAt: time });
    else this.#wake(podUid, absent(podUid, time));
  }

  /** Deletes the entry after a reading started at `time` no longer found the pod. */
  delete(podUid: string, time: number): void {
    this.#version++;
    this.#entries.delete(podUid);
    this.#wake(podUid, absent(podUid, time));
  }

  /** Records that the results of a reading of all pods, started at `time`, are in the cache. */
  updateTime(time: number): void {
    this.#globalTime = time;
    for (const podUid of [...this.#waiters.keys()]) this.#wake(podUid, this.get(podUid));
  }

  #put(podUid: string, entry: PodCacheEntry): void {
    this.#version++;
    this.#entries.set(podUid, entry);
    this.#wake(podUid, entry);
  }

  #wake(podUid: string, entry: PodCacheEntry): void {
    const waiters = this.#waiters.get(podUid);
    if (!waiters) return;
    const newest = this.#newest(entry);
    for (const waiter of [...waiters]) if (newest > waiter.time) waiter.resolve(entry);
  }

  #newest({ modifiedAt, observedAt }: PodCacheEntry): number {
    return Math.max(modifiedAt, observedAt, this.#globalTime);
  }
}

function absent(podUid: string, time: number): PodCacheEntry {
  const status = { uid: podUid, name: "", namespace: "", ips: [], sandboxes: [], containers: [] };
  return { status, error: undefined, modifiedAt: time, observedAt: time };
}
