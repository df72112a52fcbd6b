import { Backoff, RecentMap, retryPolicies, stopped, type Timer, WakeableSleep } from "@nodekeeper/core/lib";
import type { HintedExit, RuntimeHint } from "../runtime/index.ts";
import type { LifecycleContext } from "./context.ts";
import type { HintState } from "./metrics.ts";
import type { RelistPacing } from "./pacing.ts";
import type { PodQueue } from "./pod-queue.ts";

// Enough for a burst of short-lived containers between two readings.
const MAX_EXITS = 1_000;
// Bounds memory if hints name nonexistent pods. Dropped hints may be counted as misses.
const MAX_HINTED = 10_000;
// Runtimes send events before or after their lists show the change: milliseconds apart in containerd, more
// under load.
const RECHECKS_MS = [100, 1_000];

/**
 * The runtime's container events as hints, compared with the changes that readings find. `HintStream` adds
 * hints, `Relist` reports lists and `PodTracker` changes, and pods to read are added to the queue.
 *
 * 1. A pod named by a hint is read immediately, and again shortly afterwards if it had not changed.
 * 2. A change that a relist finds without a hint counts as a miss: the stream is reopened, immediately the
 *    first time and with backoff after that. Relists use the short period for `hintDistrustMs`, and then
 *    until a hint arrives in time.
 * 3. A stream is trusted once a hint arrives in time for a change of the pod it names, if the runtime sends
 *    each event to all subscribers. Hints without a change do not count, because containerd replays those of
 *    the last minutes to each new subscriber.
 * 4. Until the first change, a stream of such a runtime is neither trusted nor distrusted: relists become less frequent
 *    with the time since it was opened, and the first change found without a hint counts as a miss.
 * 5. Exits reported by events are kept for containers that are removed before they can be inspected.
 */
export class Hints {
  readonly #context: LifecycleContext;
  readonly #pacing: RelistPacing;
  readonly #queue: PodQueue;
  // The most recent exits by container ID.
  readonly #exits = new RecentMap<string, HintedExit>(MAX_EXITS);
  // Pods with a hint but no change since, with the number of repeated readings.
  readonly #pending = new Map<string, { hintedAt: number; rechecks: number }>();
  // Time of the last hint for each pod. Expires with a later list.
  readonly #hintedAt = new Map<string, number>();
  // Pods that changed in a list without a hint, until the grace period ends.
  readonly #unexplained = new Set<string>();
  #missTimer: Timer | undefined;
  #state: HintState = "starting";
  // Whether a change was missed and no hint has arrived in time since.
  #isSilent = false;
  // For the open stream: whether a hint arrived in time, and whether the runtime sends each event to all
  // subscribers.
  #isInTime = false;
  #isBroadcast = false;
  #openedAt = Number.POSITIVE_INFINITY;
  #reopen = new AbortController();
  #reopenNotBefore = Number.NEGATIVE_INFINITY;
  readonly #reopenings: Backoff;
  /** Woken when the runtime was restarted. Its support of events must then be determined again. */
  readonly restarts = new WakeableSleep();

  constructor(context: LifecycleContext, pacing: RelistPacing, queue: PodQueue) {
    this.#context = context;
    this.#pacing = pacing;
    this.#queue = queue;
    this.#reopenings = new Backoff({ ...retryPolicies.runtimeEvents, random: context.random });
  }

  get state(): HintState {
    return this.#state;
  }

  /** Whether hints are being delivered, all or some of them. */
  get isOpen(): boolean {
    return this.#state === "healthy" || this.#state === "silent";
  }

  /** Returns the exit of a container as reported by an event. */
  exitOf(containerId: string): HintedExit | undefined {
    return this.#exits.get(containerId);
  }

  /** Called when a container is no longer listed, and its exit was emitted. */
  removed(containerId: string): void {
    this.#exits.delete(containerId);
  }

  /** Called when a stream is requested. Returns a signal that aborts when the stream must be reopened. */
  opening(): AbortSignal {
    this.#isInTime = false;
    this.#isBroadcast = false;
    this.#trust();
    this.#openedAt = this.#context.clock.monotonic();
    this.#reopen = new AbortController();
    return this.#reopen.signal;
  }

  /** Called when the stream is open. */
  opened(): void {
    this.enter(this.#isSilent ? "silent" : "healthy");
  }

  /**
   * Called if the runtime sends each event to all subscribers. Otherwise an open stream is not reliable:
   * containerd 1.7 sends each event to only one subscriber.
   */
  broadcasts(): void {
    this.#isBroadcast = true;
    this.#trust();
  }

  enter(state: HintState): void {
    if (this.#state === state) return;
    const wasOpen = this.isOpen;
    this.#state = state;
    this.#trust();
    if (wasOpen && this.isOpen) return;
    this.#forgetUnexplained();
    // Finds changes that happened while no hints were delivered.
    if (state !== "unsupported") this.#pacing.soon();
  }

  add({ podUid, exits }: RuntimeHint): void {
    this.#context.metrics.hints.inc();
    for (const exit of exits) this.#exits.set(exit.containerId, exit);
    if (podUid === "") {
      this.#pacing.soon();
      return;
    }
    const hintedAt = this.#context.clock.monotonic();
    if (this.#hintedAt.size >= MAX_HINTED) this.#hintedAt.clear();
    this.#hintedAt.set(podUid, hintedAt);
    // A list may show the change shortly before the hint arrives.
    if (this.#unexplained.delete(podUid)) this.#inTime();
    // Readings that start now may not show the change yet. If too many pods are pending, the next relist
    // finds the change.
    const rechecks = this.#queue.isWaiting(podUid) ? 1 : 0;
    if (this.#pending.has(podUid) || this.#pending.size < this.#context.settings.requestLimit)
      this.#pending.set(podUid, { hintedAt, rechecks });
    this.#queue.add(podUid);
  }

  /**
   * Called when a caller starts to wait for a pod. Reads the pod early, because the next relist may not be
   * due soon.
   */
  wanted(podUid: string): void {
    if (this.isOpen) this.#queue.add(podUid);
    this.#pacing.retry();
  }

  /**
   * Called when a list of all pods that started at `startedAt` (monotonic milliseconds) has succeeded, before
   * its changes are reported.
   */
  listed(startedAt: number): void {
    // Keeps later hints, because a runtime may send an event before its lists show the change.
    const satisfied = startedAt - this.#context.settings.hintGraceMs;
    for (const [podUid, at] of this.#hintedAt) if (at < satisfied) this.#hintedAt.delete(podUid);
    for (const [podUid, { hintedAt }] of this.#pending) if (hintedAt < startedAt) this.unchanged(podUid);
  }

  /**
   * Called when a list of all pods shows a change of a pod, unless another reading may have found it already.
   * @param previousAt start of the previous list
   */
  foundByList(podUid: string, previousAt: number): void {
    // A change counts as a miss only if the stream has been open since the previous list.
    if (!this.isOpen || this.#openedAt >= previousAt) return;
    // While the runtime is slow, a pod may wait for its reading longer than its hint is kept.
    if (this.#hintedAt.has(podUid) || this.#pending.has(podUid)) return;
    this.#unexplained.add(podUid);
    const { clock, settings } = this.#context;
    this.#missTimer ??= clock.after(settings.hintGraceMs, () => this.#countMisses());
  }

  /** Called when a pod was read and had not changed. */
  unchanged(podUid: string): void {
    const pending = this.#pending.get(podUid);
    if (!pending || this.#queue.isWaiting(podUid)) return;
    const delayMs = RECHECKS_MS[pending.rechecks++];
    if (delayMs === undefined) this.#pending.delete(podUid);
    else this.#queue.addAfter(podUid, delayMs);
  }

  /** Called when a reading of a pod that started at `startedAt` (monotonic milliseconds) found a change. */
  changed(podUid: string, startedAt: number): void {
    const pending = this.#pending.get(podUid);
    if (!pending || pending.hintedAt > startedAt) return;
    this.#pending.delete(podUid);
    this.#queue.cancel(podUid);
    this.#inTime();
  }

  /** Cancels the timers. */
  stop(): void {
    this.#pending.clear();
    this.#forgetUnexplained();
  }

  // A hint named a changed pod in time.
  #inTime(): void {
    if (!this.isOpen) return;
    this.#isInTime = true;
    this.#isSilent = false;
    this.#reopenings.reset();
    this.#reopenNotBefore = Number.NEGATIVE_INFINITY;
    this.enter("healthy");
    this.#trust();
  }

  #countMisses(): void {
    const count = this.#unexplained.size;
    this.#forgetUnexplained();
    if (count === 0) return;
    this.#context.metrics.hintMisses.inc(count);
    this.#pacing.distrust();
    if (!this.isOpen) return;
    this.#isInTime = false;
    this.#isSilent = true;
    this.enter("silent");
    const now = this.#context.clock.monotonic();
    if (now < this.#reopenNotBefore) return;
    this.#reopenNotBefore = now + this.#reopenings.next();
    this.#reopen.abort(stopped("the stream missed changes"));
  }

  #forgetUnexplained(): void {
    this.#missTimer?.cancel();
    this.#missTimer = undefined;
    this.#unexplained.clear();
  }

  #trust(): void {
    const isReliable = this.#state === "healthy" && this.#isBroadcast;
    // The first change that a list finds proves or disproves the stream.
    if (isReliable && !this.#isInTime) this.#pacing.quiet(this.#openedAt);
    else this.#pacing.trust(isReliable);
  }
}
