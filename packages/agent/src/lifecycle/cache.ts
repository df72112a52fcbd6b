import type { PodIdentity } from "@nodekeeper/api/lifecycle";
import { abortable } from "@nodekeeper/core/lib";
import type { PodStatus } from "../runtime/index.ts";
import type { Hints } from "./hints.ts";

/** Cache entry of a pod. Times are monotonic milliseconds. */
export interface PodCacheEntry {
  /**
   * Status from the last successful reading. An empty status with the UID if the runtime does not have the
   * pod.
   */
  readonly status: PodStatus;
  /** Error of the latest inspection, if it failed. `status` is then older. */
  readonly error: Error | undefined;
  /** Start of the reading that produced this entry: a successful reading, or the inspection that failed. */
  readonly modifiedAt: number;
  /** Start of the last reading of the pod, whether or not it had changed. A failed reading counts. */
  readonly observedAt: number;
}

/** Read access to the cache. */
export interface PodStatusReader {
  /** Returns the current entry of a pod, with an empty status if the pod is unknown. */
  get(podUid: string): PodCacheEntry;
  /**
   * Resolves with the entry of a pod once a reading that started after `time` (monotonic milliseconds) has
   * inspected the pod or found it absent. A list in which the pod's containers are unchanged does not count,
   * because its IPs may have changed. A failed inspection counts; the entry contains its error. Rejects with
   * the signal's reason.
   */
  getNewerThan(podUid: string, time: number, signal: AbortSignal): Promise<PodCacheEntry>;
  /** Returns the UIDs of all pods in the cache. */
  uids(): string[];
  /** Version of the cache. Changes with every write and deletion. */
  readonly version: number;
}

interface Waiter {
  readonly time: number;
  readonly resolve: (entry: PodCacheEntry) => void;
}

/** Statuses of all pods. Only the tracker writes to it; other parts use it as a PodStatusReader. */
export class PodStatusCache implements PodStatusReader {
  readonly #entries = new Map<string, PodCacheEntry>();
  readonly #waiters = new Map<string, Set<Waiter>>();
  readonly #hints: Pick<Hints, "wanted"> | undefined;
  // Start of the last completed relist, monotonic milliseconds.
  #globalTime = Number.NEGATIVE_INFINITY;
  #version = 0;

  /** @param hints notified when a caller starts to wait for a pod, so that the pod is read early */
  constructor(hints?: Pick<Hints, "wanted">) {
    this.#hints = hints;
  }

  get version(): number {
    return this.#version;
  }

  get size(): number {
    return this.#entries.size;
  }

  /** Number of callers that wait for a reading. */
  get waiting(): number {
    return [...this.#waiters.values()].reduce((sum, { size }) => sum + size, 0);
  }

  /** Returns the UIDs of the pods that callers are waiting for. */
  waitedFor(): string[] {
    return [...this.#waiters.keys()];
  }

  isWaitedFor(podUid: string): boolean {
    return this.#waiters.has(podUid);
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
    if (this.#inspectedAt(entry) > time) return Promise.resolve(entry);
    const { promise, resolve } = Promise.withResolvers<PodCacheEntry>();
    const waiter: Waiter = { time, resolve };
    const waiters = this.#waiters.get(podUid) ?? new Set();
    this.#waiters.set(podUid, waiters.add(waiter));
    this.#hints?.wanted(podUid);
    return abortable(promise, signal).finally(() => this.#leave(podUid, waiter));
  }

  /** Stores the status from a reading that started at `time`. */
  set(podUid: string, status: PodStatus, time: number): void {
    this.#put(podUid, { status, error: undefined, modifiedAt: time, observedAt: time });
  }

  /**
   * Records that the inspection failed in a reading that started at `time`. Keeps the last status, or creates
   * an empty one. Unknown names are empty.
   */
  fail({ uid, name, namespace }: PodIdentity, error: Error, time: number): void {
    const status = this.#entries.get(uid)?.status ?? { ...absent(uid, time).status, name, namespace };
    this.#put(uid, { status, error, modifiedAt: time, observedAt: time });
  }

  /** Records that a reading that started at `time` found the pod unchanged. */
  observe(podUid: string, time: number): void {
    const entry = this.#entries.get(podUid);
    if (entry) this.#put(podUid, { ...entry, observedAt: time });
    else this.#wake(podUid, absent(podUid, time));
  }

  /** Deletes the entry because a reading that started at `time` no longer found the pod. */
  delete(podUid: string, time: number): void {
    this.#version++;
    this.#entries.delete(podUid);
    this.#wake(podUid, absent(podUid, time));
  }

  /** Records that the cache contains the results of a relist that started at `time`. */
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
    const inspectedAt = this.#inspectedAt(entry);
    for (const waiter of waiters) {
      if (inspectedAt <= waiter.time) continue;
      this.#leave(podUid, waiter);
      waiter.resolve(entry);
    }
  }

  #leave(podUid: string, waiter: Waiter): void {
    const waiters = this.#waiters.get(podUid);
    if (waiters?.delete(waiter) && waiters.size === 0) this.#waiters.delete(podUid);
  }

  // A pod that is not in the cache has nothing to inspect: a relist without it counts as an inspection.
  #inspectedAt({ status, modifiedAt }: PodCacheEntry): number {
    return this.#entries.has(status.uid) ? modifiedAt : Math.max(modifiedAt, this.#globalTime);
  }
}

function absent(podUid: string, time: number): PodCacheEntry {
  const status = { uid: podUid, name: "", namespace: "", ips: [], sandboxes: [], containers: [] };
  return { status, error: undefined, modifiedAt: time, observedAt: time };
}
