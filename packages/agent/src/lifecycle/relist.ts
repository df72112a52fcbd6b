import { type Clock, messageOf, withDeadline } from "@nodekeeper/core/lib";
import type { Pod, Runtime } from "../runtime/index.ts";
import type { PodStatusCache } from "./cache.ts";
import type { LifecycleMetrics } from "./metrics.ts";
import type { PodRecords } from "./records.ts";
import type { PodTracker } from "./tracker.ts";

export interface RelistOptions {
  runtime: Runtime;
  tracker: PodTracker;
  records: PodRecords;
  cache: PodStatusCache;
  metrics: LifecycleMetrics;
  clock: Clock;
  listDeadlineMs: number;
  /** All pods were listed by a call that began then, monotonic milliseconds. */
  onListed: (startedAt: number) => void;
  /** The list shows a change of this pod that was not known to be under way. */
  onChange: (podUid: string) => void;
}

/** What relists are at, for the health check. Times are monotonic milliseconds. */
export interface RelistStatus {
  inFlight: { phase: "list" | "inspect"; since: number; startedAt: number; pods: number } | undefined;
  /** When the last one began whose list succeeded; undefined before the first. */
  lastSuccessAt: number | undefined;
  /** The same of the one before it; minus infinity where there is none. */
  previousSuccessAt: number;
  lastError: { message: string; at: number } | undefined;
}

/** Reads all pods: lists them, and has those inspected that changed. One at a time; the caller sees to that. */
export class Relist {
  readonly #options: RelistOptions;
  readonly #status: RelistStatus = {
    inFlight: undefined,
    lastSuccessAt: undefined,
    previousSuccessAt: Number.NEGATIVE_INFINITY,
    lastError: undefined,
  };

  constructor(options: RelistOptions) {
    this.#options = options;
  }

  get status(): Readonly<RelistStatus> {
    return this.#status;
  }

  /**
   * Resolves when every pod was done with, except those with which the runtime takes long. Throws when the list fails.
   * @param silent tells nothing of what is found: this is how the node is
   */
  async run(silent: boolean, signal: AbortSignal): Promise<void> {
    const { clock, cache, metrics } = this.#options;
    const startedAt = clock.monotonic();
    const last = this.#status.lastSuccessAt;
    if (last !== undefined) metrics.relistInterval.observe((startedAt - last) / 1000);
    try {
      const pods = await this.#list(startedAt, signal);
      await this.#take(pods, startedAt, silent, signal);
      signal.throwIfAborted();
      cache.updateTime(startedAt);
    } finally {
      this.#status.inFlight = undefined;
      metrics.relistDuration.observe((clock.monotonic() - startedAt) / 1000);
    }
  }

  async #list(startedAt: number, signal: AbortSignal): Promise<Pod[]> {
    const { runtime, tracker, clock, metrics, listDeadlineMs, records } = this.#options;
    this.#status.inFlight = { phase: "list", since: startedAt, startedAt, pods: records.size };
    tracker.listBegins();
    try {
      const pods = await withDeadline(clock, listDeadlineMs, "list of all pods", signal, (scope) =>
        runtime.listPods(scope),
      );
      this.#status.previousSuccessAt = this.#status.lastSuccessAt ?? Number.NEGATIVE_INFINITY;
      this.#status.lastSuccessAt = startedAt;
      this.#status.lastError = undefined;
      metrics.lastSeen.set(clock.now() / 1000);
      this.#options.onListed(startedAt);
      return pods;
    } catch (error) {
      if (!signal.aborted) this.#status.lastError = { message: messageOf(error), at: clock.monotonic() };
      throw error;
    }
  }

  async #take(pods: readonly Pod[], startedAt: number, silent: boolean, signal: AbortSignal): Promise<void> {
    const { tracker, records, clock, onChange } = this.#options;
    const listed = new Map<string, Pod>();
    for (const pod of pods) if (!listed.has(pod.uid)) listed.set(pod.uid, pod);
    const changed: Promise<void>[] = [];
    for (const uid of new Set([...records.uids(), ...records.marked(), ...listed.keys()])) {
      const known = records.markOf(uid) !== undefined;
      const done = tracker.take(uid, listed.get(uid), startedAt, silent, signal);
      if (!done) continue;
      changed.push(done);
      if (!known) onChange(uid);
    }
    if (changed.length === 0) return;
    this.#status.inFlight = { phase: "inspect", since: clock.monotonic(), startedAt, pods: changed.length };
    await Promise.all(changed);
  }
}
