import { type Clock, type ErrorId, errorIdOf, messageOf, withDeadline } from "@nodekeeper/core/lib";
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
  /** Called when a list of all pods started at `startedAt` (monotonic milliseconds) succeeded. */
  onListed: (startedAt: number) => void;
  /** Called when the list shows a change of a pod that was not being read. */
  onChange: (podUid: string) => void;
}

/** Progress of relists, for the health check. Times are monotonic milliseconds. */
export interface RelistStatus {
  inFlight: { phase: "list" | "inspect"; since: number; startedAt: number; pods: number } | undefined;
  /** Start of the last relist whose list succeeded; undefined before the first. */
  lastSuccessAt: number | undefined;
  /** Start of the one before it; -Infinity if there is none. */
  previousSuccessAt: number;
  lastError: { message: string; id: ErrorId | undefined; at: number } | undefined;
}

/** Lists all pods and has the changed ones inspected. Calls must not overlap. */
export class Relist {
  readonly #options: RelistOptions;
  readonly #status: RelistStatus = {
    inFlight: undefined,
    lastSuccessAt: undefined,
    previousSuccessAt: Number.NEGATIVE_INFINITY,
    lastError: undefined,
  };

  #last: { readonly pods: readonly Pod[]; readonly byUid: ReadonlyMap<string, Pod> } = {
    pods: [],
    byUid: new Map(),
  };

  constructor(options: RelistOptions) {
    this.#options = options;
  }

  get status(): Readonly<RelistStatus> {
    return this.#status;
  }

  /** Resolves when every pod was handled, except those for which the runtime is slow. Throws if the list fails. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock, cache, metrics } = this.#options;
    const startedAt = clock.monotonic();
    const last = this.#status.lastSuccessAt;
    if (last !== undefined) metrics.relistInterval.observe((startedAt - last) / 1000);
    try {
      const pods = await this.#list(startedAt, signal);
      await this.#take(pods, startedAt, signal);
      signal.throwIfAborted();
      cache.updateTime(startedAt);
    } finally {
      this.#status.inFlight = undefined;
      metrics.relistDuration.observe((clock.monotonic() - startedAt) / 1000);
    }
  }

  async #list(startedAt: number, signal: AbortSignal): Promise<readonly Pod[]> {
    const { runtime, tracker, clock, metrics, listDeadlineMs, records } = this.#options;
    this.#status.inFlight = { phase: "list", since: startedAt, startedAt, pods: records.size };
    tracker.listStarts();
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
      if (!signal.aborted) {
        const [message, id] = [messageOf(error), errorIdOf(error)];
        this.#status.lastError = { message, id, at: clock.monotonic() };
      }
      throw error;
    }
  }

  async #take(pods: readonly Pod[], startedAt: number, signal: AbortSignal): Promise<void> {
    const { tracker, records, clock, onChange } = this.#options;
    const listed = this.#byUid(pods);
    const changed: Promise<void>[] = [];
    for (const uid of new Set([...records.uids(), ...records.marked(), ...listed.keys()])) {
      const known = records.markOf(uid) !== undefined;
      const done = tracker.handleListed(uid, listed.get(uid), startedAt, signal);
      if (!done) continue;
      changed.push(done);
      if (!known) onChange(uid);
    }
    if (changed.length === 0) return;
    this.#status.inFlight = { phase: "inspect", since: clock.monotonic(), startedAt, pods: changed.length };
    await Promise.all(changed);
  }

  // A runtime on which nothing has changed returns the same array.
  #byUid(pods: readonly Pod[]): ReadonlyMap<string, Pod> {
    if (this.#last.pods === pods) return this.#last.byUid;
    const byUid = new Map<string, Pod>();
    for (const pod of pods) if (!byUid.has(pod.uid)) byUid.set(pod.uid, pod);
    this.#last = { pods, byUid };
    return byUid;
  }
}
