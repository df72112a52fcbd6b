import type { PodStatus } from "../runtime/index.ts";
import type { PodIdentity } from "./events.ts";

/** What the cache knows of a pod. Times are the clock's monotonic milliseconds. */
export interface PodCacheEntry {
  /** The last status that could be read; an empty one with the UID for a pod the runtime does not have. */
  readonly status: PodStatus;
  /** Why the newest inspection failed: `status` is older than that. */
  readonly error: Error | undefined;
  /** When the reading began that led to this entry. */
  readonly modifiedAt: number;
  /** When the last reading began that saw the pod, with or without a change. */
  readonly observedAt: number;
}

/** The cache as its readers see it. */
export interface PodStatusReader {
  /** The entry of a pod at once; an empty status for a pod that is not known. */
  get(podUid: string): PodCacheEntry;
  /**
   * The entry once the runtime was read after `time` (monotonic milliseconds): the pod alone, or all pods.
   * An inspection that failed after `time` counts, with its error in the entry. Rejects with the signal's reason.
   */
  getNewerThan(podUid: string, time: number, signal: AbortSignal): Promise<PodCacheEntry>;
  /** The UIDs of all pods in the cache. */
  uids(): string[];
  /** Differs whenever an entry was written or deleted in between. */
  readonly version: number;
}

interface Waiter {
  readonly time: number;
  readonly resolve: (entry: PodCacheEntry) => void;
}

/** Statuses of all pods. It has one writer, the tracker; everybody else gets it as a PodStatusReader. */
export class PodStatusCache implements PodStatusReader {
  readonly #entries = new Map<string, PodCacheEntry>();
  readonly #waiters = new Map<string, Set<Waiter>>();
  readonly #onWait: (podUid: string) => void;
  #globalTime = Number.NEGATIVE_INFINITY;
  #waiting = 0;
  #version = 0;

  /** @param onWait called when somebody begins to wait for a pod, so that it can be read before its turn */
  constructor(onWait: (podUid: string) => void = () => {}) {
    this.#onWait = onWait;
  }

  /** When the last reading of all pods began whose results are all here. */
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

  /** The UIDs of pods that somebody waits for. */
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

  /** A reading that began at `time` gave this status. */
  set(podUid: string, status: PodStatus, time: number): void {
    this.#put(podUid, { status, error: undefined, modifiedAt: time, observedAt: time });
  }

  /**
   * A reading that began at `time` could not inspect the pod; its last status stays, an empty one where there was
   * none. Names that are not known are empty.
   */
  fail({ uid, name, namespace }: PodIdentity, error: Error, time: number): void {
    const status = this.#entries.get(uid)?.status ?? { ...absent(uid, time).status, name, namespace };
    this.#put(uid, { status, error, modifiedAt: time, observedAt: time });
  }

  /** A reading that began at `time` found the pod as it was. */
  observe(podUid: string, time: number): void {
    const entry = this.#entries.get(podUid);
    if (entry) this.#put(podUid, { ...entry, observedAt: time });
    else this.#wake(podUid, absent(podUid, time));
  }

  /** A reading that began at `time` no longer found the pod. */
  delete(podUid: string, time: number): void {
    this.#version++;
    this.#entries.delete(podUid);
    this.#wake(podUid, absent(podUid, time));
  }

  /** All pods have been read by a reading that began at `time`, and what it found is in the cache. */
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
