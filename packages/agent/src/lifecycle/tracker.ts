import { PodNotInspectable, RuntimeNotResponding } from "@nodekeeper/api/errors";
import { toError, withDeadline } from "@nodekeeper/core/lib";
import type { Pod, PodStatus } from "../runtime/index.ts";
import type { LifecycleContext } from "./context.ts";
import { diffPods, samePods, vanishedRunning } from "./diff.ts";
import type { LifecycleParts } from "./parts.ts";
import { INSPECTION_FAILED, podEvents, podSync } from "./pod-events.ts";
import type { SlowReading } from "./progress.ts";
import { missingIn, reconcile, withKnownIps } from "./reconcile.ts";
import { callDeadlineOf } from "./settings.ts";

const MAX_NAMED = 3;

/** One reading of one pod. */
interface Reading {
  uid: string;
  /** When the reading started, before the first call to the runtime; monotonic milliseconds. */
  startedAt: number;
  signal: AbortSignal;
  /** Called when the reading is slow. Callers then stop waiting for it. */
  onOverdue: (slow: SlowReading) => void;
}

/**
 * Converts readings of pods into cache entries and events. Readings of the same pod do not overlap, and a
 * reading is used only if it started after the last used one ended.
 */
export class PodTracker {
  readonly #context: LifecycleContext;
  readonly #state: LifecycleParts;
  readonly #busy = new Map<string, Promise<void>>();
  readonly #next = new Map<string, Promise<void>>();
  // Pods read since the current list started. The list may be older than their records.
  readonly #readSinceList = new Set<string>();

  constructor(context: LifecycleContext, state: LifecycleParts) {
    this.#context = context;
    this.#state = state;
  }

  /** Called before all pods are listed. */
  listStarts(): void {
    this.#readSinceList.clear();
  }

  /**
   * Handles a pod in a list of all pods. `listed` is undefined if the pod is not listed. Returns undefined if
   * nothing changed, otherwise a promise that resolves when the pod has been handled or is slow.
   */
  handleListed(uid: string, listed: Pod | undefined, startedAt: number, signal: AbortSignal) {
    if (this.#busy.has(uid) || this.#readSinceList.has(uid)) return this.read(uid, signal);
    if (this.#isUnchanged(uid, listed)) return undefined;
    const { records, hints, progress } = this.#state;
    // A pod is also read if a caller waits for it, or if the cache does not have it.
    if (!records.markOf(uid) && !samePods(records.get(uid)?.emitted, listed))
      hints.foundByList(uid, progress.relist.previousSuccessAt);
    return this.#start(uid, (onOverdue) => this.#process({ uid, startedAt, signal, onOverdue }, listed));
  }

  /**
   * Reads a single pod, after its current reading if one is in progress. Resolves like `handleListed`; never
   * rejects.
   */
  read(uid: string, signal: AbortSignal): Promise<void> {
    const busy = this.#busy.get(uid);
    if (!busy) return this.#start(uid, (onOverdue) => this.#readAlone(uid, signal, onOverdue));
    let next = this.#next.get(uid);
    if (!next) {
      next = busy.then(() => {
        this.#next.delete(uid);
        return signal.aborted ? undefined : this.read(uid, signal);
      });
      this.#next.set(uid, next);
    }
    return this.#state.progress.slow.has(uid) ? Promise.resolve() : next;
  }

  /** Resolves when no reading is in progress. */
  async idle(): Promise<void> {
    while (this.#busy.size + this.#next.size > 0)
      await Promise.all([...this.#busy.values(), ...this.#next.values()]);
  }

  #start(uid: string, work: (onOverdue: Reading["onOverdue"]) => Promise<void>): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const onOverdue = (slow: SlowReading) => {
      this.#state.progress.slow.set(uid, slow);
      resolve();
    };
    const done = work(onOverdue)
      .catch((error) =>
        this.#context.log.error({ podUid: uid, err: error }, "internal error while reading a pod"),
      )
      .finally(() => {
        this.#busy.delete(uid);
        this.#state.progress.slow.delete(uid);
        this.#readSinceList.add(uid);
        resolve();
      });
    this.#busy.set(uid, done);
    return promise;
  }

  async #readAlone(uid: string, signal: AbortSignal, onOverdue: Reading["onOverdue"]): Promise<void> {
    const { clock, metrics } = this.#context;
    const reading: Reading = { uid, startedAt: clock.monotonic(), signal, onOverdue };
    let listed: Pod | undefined;
    try {
      listed = await this.#list(reading);
    } catch (error) {
      this.#fail(reading, error);
      return;
    }
    if (this.#isUnchanged(uid, listed)) {
      this.#state.cache.observe(uid, reading.startedAt);
      this.#state.hints.unchanged(uid);
    } else await this.#process(reading, listed);
    metrics.podRelistDuration.observe((clock.monotonic() - reading.startedAt) / 1000);
  }

  // Records may be restored from an earlier process, but the cache starts empty.
  #isUnchanged(uid: string, listed: Pod | undefined): boolean {
    const { records, cache } = this.#state;
    if (records.markOf(uid) || cache.isWaitedFor(uid)) return false;
    if (!samePods(records.get(uid)?.emitted, listed)) return false;
    return listed === undefined || cache.has(uid);
  }

  async #process(reading: Reading, listed: Pod | undefined): Promise<void> {
    const { records } = this.#state;
    const { uid } = reading;
    let current = listed;
    let status: PodStatus | undefined;
    try {
      // A runtime that has just started may return incomplete lists, so a missing running container is
      // confirmed by a second list.
      if (vanishedRunning(records.get(uid)?.emitted, current)) current = await this.#list(reading);
      if (current) status = await this.#inspect(reading, current);
      const missing = current && status ? missingIn(current, status) : undefined;
      if (missing?.size) current = await this.#confirmMissing(reading, missing);
    } catch (error) {
      this.#fail(reading, error, current ?? listed);
      return;
    }
    if (current && status) this.#commit(reading, current, status);
    else this.#commitRemoved(reading, status);
  }

  // Containers that the inspection did not find have been removed if a second list does not contain them
  // either.
  async #confirmMissing(reading: Reading, missing: ReadonlySet<string>): Promise<Pod | undefined> {
    const again = await this.#list(reading);
    const contradicted = [...(again?.containers ?? []), ...(again?.sandboxes ?? [])].find(({ id }) =>
      missing.has(id),
    );
    if (!contradicted) return again;
    throw new PodNotInspectable({
      problem: `${contradicted.kind} ${contradicted.id} is listed, but the runtime returns no status for it`,
    });
  }

  // Synchronous, so that readers always see a consistent cache, records and log.
  #commit({ uid, startedAt }: Reading, listed: Pod, read: PodStatus): void {
    const { records, cache, journal, hints, known, pacing } = this.#state;
    const { pod, listed: before, status: inspected, isInconsistent } = reconcile(listed, read);
    const record = records.open(pod);
    const status = withKnownIps(inspected, record.ips);
    cache.set(uid, status, startedAt);
    const transitions = [...diffPods(record.emitted, before), ...diffPods(before, pod)];
    const events = podEvents(record, transitions, read, hints);
    if (events.length === 0 && records.markOf(uid) === "failed") events.push(podSync(record, ""));
    records.unmark(uid);
    if (isInconsistent) {
      records.mark(uid, "inconsistent");
      pacing.retry();
    }
    const isSaved =
      transitions.length === 0 && samePods(record.emitted, pod) && sameIps(record.ips, status.ips);
    record.emitted = pod;
    record.ips = status.ips;
    if (isSaved && events.length === 0) {
      hints.unchanged(uid);
      return;
    }
    journal.commit(record, known.isOpen ? events : []);
    hints.changed(uid, startedAt);
  }

  #commitRemoved({ uid, startedAt }: Reading, read: PodStatus | undefined): void {
    const { records, cache, journal, hints, known } = this.#state;
    const uninspected = records.uninspected(uid);
    const record = uninspected ? records.open(uninspected) : records.get(uid);
    records.forget(uid);
    if (record) {
      const { emitted } = record;
      // Changes that only lists showed are emitted now, because the pod cannot be inspected anymore.
      const missed = uninspected ? diffPods(emitted, uninspected) : [];
      const transitions = [...missed, ...diffPods(uninspected ?? emitted, undefined)];
      const events = podEvents(record, transitions, read, hints);
      if (uninspected) events.push(podSync(record, INSPECTION_FAILED));
      record.emitted = undefined;
      journal.commit(record, known.isOpen ? events : []);
    }
    cache.delete(uid, startedAt);
    hints.changed(uid, startedAt);
  }

  #fail({ uid, startedAt, signal }: Reading, failure: unknown, listed?: Pod): void {
    if (signal.aborted) return;
    const { log, metrics } = this.#context;
    const { records, cache, pacing } = this.#state;
    const error = toError(failure);
    metrics.inspectionFailures.inc();
    const identity = records.get(uid)?.identity ?? listed;
    if (!records.markOf(uid)) {
      const pod = identity && { namespace: identity.namespace, name: identity.name };
      log.warn({ errorId: PodNotInspectable.id, podUid: uid, pod, err: error }, "failed to read pod");
    }
    records.fail(uid, listed);
    pacing.retry();
    cache.fail({ name: "", namespace: "", ...identity, uid }, error, startedAt);
  }

  // Pending calls for a pod: " (ContainerStatus of 3f2a...)".
  #callsFor(pod: Pod | undefined): string {
    if (!pod) return "";
    const ids = new Set([...pod.containers, ...pod.sandboxes].map(({ id }) => id));
    const calls = this.#context.runtime
      .callsInFlight()
      .flatMap(({ method, id }) => (id !== undefined && ids.has(id) ? [`${method} of ${id}`] : []));
    return calls.length > 0 ? ` (${calls.slice(0, MAX_NAMED).join(", ")})` : "";
  }

  #list(reading: Reading): Promise<Pod | undefined> {
    const { runtime } = this.#context;
    const { uid } = reading;
    return this.#call(reading, `list of pod ${uid}`, undefined, (signal) => runtime.listPod(uid, signal));
  }

  #inspect(reading: Reading, pod: Pod): Promise<PodStatus> {
    this.#context.metrics.inspections.inc();
    const what = `status of pod ${pod.namespace}/${pod.name}`;
    return this.#call(reading, what, pod, (signal) => this.#context.runtime.podStatus(pod, signal));
  }

  #call<T>(
    reading: Reading,
    what: string,
    pod: Pod | undefined,
    work: (signal: AbortSignal) => Promise<T>,
  ): Promise<T> {
    const { clock, settings } = this.#context;
    let startedAt = 0;
    const onOverdue = () => {
      const waited = Math.round(clock.monotonic() - startedAt);
      this.#fail(
        reading,
        new RuntimeNotResponding(
          { problem: `${what}: no response from the runtime for ${waited} ms${this.#callsFor(pod)}` },
          { code: "deadline" },
        ),
        pod,
      );
      reading.onOverdue({ what, startedAt });
    };
    const call = () => {
      startedAt = clock.monotonic();
      return withDeadline(clock, { ms: callDeadlineOf(settings), name: what }, reading.signal, work);
    };
    return this.#state.limiter.run(call, reading.signal, onOverdue);
  }
}

function sameIps(one: readonly string[], other: readonly string[]): boolean {
  return one.length === other.length && one.every((ip, at) => ip === other[at]);
}
