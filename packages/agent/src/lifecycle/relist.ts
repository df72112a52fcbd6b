import { errorIdOf, messageOf, withDeadline } from "@nodekeeper/core/lib";
import type { Pod } from "../runtime/index.ts";
import type { PodStatusCache } from "./cache.ts";
import type { LifecycleContext } from "./context.ts";
import type { RelistStatus } from "./health.ts";
import type { Hints } from "./hints.ts";
import type { PodQueue } from "./pod-queue.ts";
import type { PodRecords } from "./records.ts";
import type { PodTracker } from "./tracker.ts";

/** Parts that a relist reads and writes. */
export interface RelistParts {
  tracker: PodTracker;
  records: PodRecords;
  cache: PodStatusCache;
  queue: PodQueue;
  hints: Hints;
}

/** Lists all pods and has the changed ones inspected. Calls must not overlap. */
export class Relist {
  readonly #context: LifecycleContext;
  readonly #parts: RelistParts;
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

  constructor(context: LifecycleContext, parts: RelistParts) {
    this.#context = context;
    this.#parts = parts;
  }

  get status(): Readonly<RelistStatus> {
    return this.#status;
  }

  /**
   * Resolves when all pods have been handled, except those for which the runtime is slow. Throws if the list
   * fails.
   */
  async run(signal: AbortSignal): Promise<void> {
    const { clock, metrics } = this.#context;
    const startedAt = clock.monotonic();
    const last = this.#status.lastSuccessAt;
    if (last !== undefined) metrics.relistInterval.observe((startedAt - last) / 1000);
    try {
      const pods = await this.#list(startedAt, signal);
      await this.#take(pods, startedAt, signal);
      signal.throwIfAborted();
      this.#parts.cache.updateTime(startedAt);
    } finally {
      this.#status.inFlight = undefined;
      metrics.relistDuration.observe((clock.monotonic() - startedAt) / 1000);
    }
  }

  async #list(startedAt: number, signal: AbortSignal): Promise<readonly Pod[]> {
    const { runtime, clock, metrics, settings } = this.#context;
    const { tracker, records, queue, hints } = this.#parts;
    this.#status.inFlight = { phase: "list", since: startedAt, startedAt, pods: records.size };
    tracker.listStarts();
    try {
      const pods = await withDeadline(clock, settings.callDeadlineMs, "list of all pods", signal, (scope) =>
        runtime.listPods(scope),
      );
      this.#status.previousSuccessAt = this.#status.lastSuccessAt ?? Number.NEGATIVE_INFINITY;
      this.#status.lastSuccessAt = startedAt;
      this.#status.lastError = undefined;
      metrics.lastSeen.set(clock.now() / 1000);
      queue.listed(startedAt);
      hints.listed(startedAt);
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
    const { tracker, records, hints } = this.#parts;
    const listed = this.#byUid(pods);
    const changed: Promise<void>[] = [];
    for (const uid of new Set([...records.uids(), ...records.marked(), ...listed.keys()])) {
      const known = records.markOf(uid) !== undefined;
      const done = tracker.handleListed(uid, listed.get(uid), startedAt, signal);
      if (!done) continue;
      changed.push(done);
      if (!known) hints.foundByList(uid, this.#status.previousSuccessAt);
    }
    if (changed.length === 0) return;
    this.#status.inFlight = {
      phase: "inspect",
      since: this.#context.clock.monotonic(),
      startedAt,
      pods: changed.length,
    };
    await Promise.all(changed);
  }

  // The runtime client returns the same array if nothing has changed.
  #byUid(pods: readonly Pod[]): ReadonlyMap<string, Pod> {
    if (this.#last.pods === pods) return this.#last.byUid;
    const byUid = new Map<string, Pod>();
    for (const pod of pods) if (!byUid.has(pod.uid)) byUid.set(pod.uid, pod);
    this.#last = { pods, byUid };
    return byUid;
  }
}
