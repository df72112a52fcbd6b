import { errorIdOf, messageOf, withDeadline } from "@nodekeeper/core/lib";
import type { Pod } from "../runtime/index.ts";
import type { LifecycleContext } from "./context.ts";
import type { LifecycleParts } from "./parts.ts";
import { callDeadlineOf } from "./settings.ts";
import type { PodTracker } from "./tracker.ts";

/** Lists all pods and has the changed ones inspected. Calls must not overlap. */
export class Relist {
  readonly #context: LifecycleContext;
  readonly #parts: LifecycleParts;
  readonly #tracker: PodTracker;
  #last: { readonly pods: readonly Pod[]; readonly byUid: ReadonlyMap<string, Pod> } = {
    pods: [],
    byUid: new Map(),
  };

  constructor(context: LifecycleContext, parts: LifecycleParts, tracker: PodTracker) {
    this.#context = context;
    this.#parts = parts;
    this.#tracker = tracker;
  }

  /**
   * Resolves when all pods have been handled, except those for which the runtime is slow. Throws if the list
   * fails.
   */
  async run(signal: AbortSignal): Promise<void> {
    const { clock, metrics } = this.#context;
    const { relist } = this.#parts.progress;
    const startedAt = clock.monotonic();
    const last = relist.lastSuccessAt;
    if (last !== undefined) metrics.relistInterval.observe((startedAt - last) / 1000);
    try {
      const pods = await this.#list(startedAt, signal);
      await this.#take(pods, startedAt, signal);
      signal.throwIfAborted();
      this.#parts.cache.updateTime(startedAt);
      relist.isListed = true;
    } finally {
      relist.inFlight = undefined;
      metrics.relistDuration.observe((clock.monotonic() - startedAt) / 1000);
    }
  }

  async #list(startedAt: number, signal: AbortSignal): Promise<readonly Pod[]> {
    const { runtime, clock, metrics, settings } = this.#context;
    const { records, queue, hints, progress } = this.#parts;
    const { relist } = progress;
    relist.inFlight = { phase: "list", since: startedAt, startedAt, pods: records.size };
    this.#tracker.listStarts();
    try {
      const pods = await withDeadline(
        clock,
        { ms: callDeadlineOf(settings), name: "list of all pods" },
        signal,
        (scope) => runtime.listPods(scope),
      );
      relist.previousSuccessAt = relist.lastSuccessAt ?? Number.NEGATIVE_INFINITY;
      relist.lastSuccessAt = startedAt;
      relist.lastError = undefined;
      metrics.lastSeen.set(clock.now() / 1000);
      queue.listed(startedAt);
      hints.listed(startedAt);
      return pods;
    } catch (error) {
      if (!signal.aborted) {
        const [message, id] = [messageOf(error), errorIdOf(error)];
        relist.lastError = { message, id, at: clock.monotonic() };
      }
      throw error;
    }
  }

  async #take(pods: readonly Pod[], startedAt: number, signal: AbortSignal): Promise<void> {
    const { records, progress } = this.#parts;
    const { relist } = progress;
    const listed = this.#byUid(pods);
    const changed: Promise<void>[] = [];
    for (const uid of new Set([...records.uids(), ...records.marked(), ...listed.keys()])) {
      const done = this.#tracker.handleListed(uid, listed.get(uid), startedAt, signal);
      if (done) changed.push(done);
    }
    if (changed.length === 0) return;
    relist.inFlight = {
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
