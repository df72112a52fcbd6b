import { type Clock, type Logger, NodekeeperError, toError, withDeadline } from "@nodekeeper/core/lib";
import type { Pod, PodStatus, Runtime } from "../runtime/index.ts";
import type { PodStatusCache } from "./cache.ts";
import { diffPods, samePods, vanishedRunning } from "./diff.ts";
import type { HintedExits } from "./hinted-exits.ts";
import type { Journal } from "./journal.ts";
import type { InspectionLimiter } from "./limiter.ts";
import type { LifecycleMetrics } from "./metrics.ts";
import { podEvents } from "./pod-events.ts";
import { missingIn, reconcile, withKnownIps } from "./reconcile.ts";
import type { PodRecords } from "./records.ts";

export interface PodTrackerOptions {
  runtime: Runtime;
  records: PodRecords;
  cache: PodStatusCache;
  journal: Journal;
  limiter: InspectionLimiter;
  metrics: LifecycleMetrics;
  /** Timeout of one call to the runtime, milliseconds. */
  callDeadlineMs: number;
  /**
   * Whether consumers can get a snapshot of the node. No events are emitted before: the first list is the snapshot. A
   * reading that outlives the first list emits what it finds, for the snapshot shows its pod as failed.
   */
  isKnown: () => boolean;
  /** Exits reported by the runtime's container events. */
  hintedExits: Pick<HintedExits, "get">;
  /** Called when a pod was read and had not changed; not called for unchanged pods in lists of all pods. */
  onUnchanged: (podUid: string) => void;
  /** Called when a reading of a pod, started at `startedAt` (monotonic milliseconds), found a change. */
  onChanged: (podUid: string, startedAt: number) => void;
  clock: Clock;
  log: Logger;
}

const MAX_NAMED = 3;

/** A slow reading of a pod that is in progress. */
export interface SlowReading {
  /** What is read: "status of pod default/web". */
  what: string;
  /** Monotonic milliseconds. */
  startedAt: number;
}

/** One reading of one pod. */
interface Reading {
  uid: string;
  /** Monotonic milliseconds before the runtime was called. */
  startedAt: number;
  signal: AbortSignal;
  /** Called when the reading is slow; callers stop waiting for it. */
  onOverdue: (slow: SlowReading) => void;
}

/**
 * Converts readings of pods into cache entries and events. Readings of one pod do not overlap, and a reading counts only
 * if it started after the previous counted one ended.
 */
export class PodTracker {
  readonly #options: PodTrackerOptions;
  readonly #busy = new Map<string, Promise<void>>();
  readonly #next = new Map<string, Promise<void>>();
  /** Slow readings by UID. */
  readonly #overdue = new Map<string, SlowReading>();
  // Pods that were read while a list was in progress: the list may be older than their records.
  readonly #readSinceList = new Set<string>();

  constructor(options: PodTrackerOptions) {
    this.#options = options;
  }

  /** Called before a list of all pods is requested. */
  listStarts(): void {
    this.#readSinceList.clear();
  }

  /**
   * Handles a pod in a list of all pods; `listed` is undefined if the pod is not in it. Returns undefined if nothing
   * changed, otherwise a promise that resolves when the pod was handled or is slow.
   */
  handleListed(uid: string, listed: Pod | undefined, startedAt: number, signal: AbortSignal) {
    if (this.#busy.has(uid) || this.#readSinceList.has(uid)) return this.read(uid, signal);
    if (this.#isUnchanged(uid, listed)) return undefined;
    return this.#start(uid, (onOverdue) => this.#process({ uid, startedAt, signal, onOverdue }, listed));
  }

  /** Reads a single pod, after its current reading if there is one. Resolves like `handleListed`; never rejects. */
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
    return this.#overdue.has(uid) ? Promise.resolve() : next;
  }

  /** Resolves when no reading is in progress. */
  async idle(): Promise<void> {
    while (this.#busy.size + this.#next.size > 0)
      await Promise.all([...this.#busy.values(), ...this.#next.values()]);
  }

  /** Slow readings in progress, the longest first. */
  slow(): SlowReading[] {
    return [...this.#overdue.values()].sort((one, other) => one.startedAt - other.startedAt);
  }

  #start(uid: string, work: (onOverdue: Reading["onOverdue"]) => Promise<void>): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const onOverdue = (slow: SlowReading) => {
      this.#overdue.set(uid, slow);
      resolve();
    };
    const done = work(onOverdue)
      .catch((error) =>
        this.#options.log.error({ podUid: uid, err: error }, "internal error while reading a pod"),
      )
      .finally(() => {
        this.#busy.delete(uid);
        this.#overdue.delete(uid);
        this.#readSinceList.add(uid);
        resolve();
      });
    this.#busy.set(uid, done);
    return promise;
  }

  async #readAlone(uid: string, signal: AbortSignal, onOverdue: Reading["onOverdue"]): Promise<void> {
    const { cache, clock, metrics, onUnchanged } = this.#options;
    const reading: Reading = { uid, startedAt: clock.monotonic(), signal, onOverdue };
    let listed: Pod | undefined;
    try {
      listed = await this.#list(reading);
    } catch (error) {
      this.#fail(reading, error);
      return;
    }
    if (this.#isUnchanged(uid, listed)) {
      cache.observe(uid, reading.startedAt);
      onUnchanged(uid);
    } else await this.#process(reading, listed);
    metrics.podRelistDuration.observe((clock.monotonic() - reading.startedAt) / 1000);
  }

  // Records may be restored from an earlier process, but the cache starts empty.
  #isUnchanged(uid: string, listed: Pod | undefined): boolean {
    const { records, cache } = this.#options;
    if (records.markOf(uid) || !samePods(records.get(uid)?.emitted, listed)) return false;
    return listed === undefined || cache.has(uid);
  }

  async #process(reading: Reading, listed: Pod | undefined): Promise<void> {
    const { records } = this.#options;
    const { uid } = reading;
    let current = listed;
    let status: PodStatus | undefined;
    try {
      // A runtime that has just started may list incompletely, so a missing running container is confirmed by a second list.
      if (vanishedRunning(records.get(uid)?.emitted, current)) current = await this.#list(reading);
      if (current) status = await this.#inspect(reading, current);
      const missing = current && status ? missingIn(current, status) : undefined;
      if (missing?.size) current = await this.#confirmMissing(reading, missing);
    } catch (error) {
      this.#fail(reading, error, current ?? listed);
      return;
    }
    if (current && status) this.#commit(reading, current, status);
    else this.#commitRemoved(reading);
  }

  // Containers that the inspection did not find have been removed if they are not in a second list either.
  async #confirmMissing(reading: Reading, missing: ReadonlySet<string>): Promise<Pod | undefined> {
    const again = await this.#list(reading);
    const contradicted = [...(again?.containers ?? []), ...(again?.sandboxes ?? [])].find(({ id }) =>
      missing.has(id),
    );
    if (!contradicted) return again;
    throw new NodekeeperError(
      "unavailable",
      `${contradicted.kind} ${contradicted.id} is listed, but the runtime returns no status for it`,
      { id: "NK1407" },
    );
  }

  // Synchronous, so that readers always find cache, records and log consistent.
  #commit({ uid, startedAt }: Reading, listed: Pod, read: PodStatus): void {
    const { records, cache, journal, isKnown, hintedExits, onUnchanged, onChanged } = this.#options;
    const { pod, listed: before, status: inspected, isInconsistent } = reconcile(listed, read);
    const record = records.open(pod);
    const status = withKnownIps(inspected, record.ips);
    cache.set(uid, status, startedAt);
    const transitions = [...diffPods(record.emitted, before), ...diffPods(before, pod)];
    const events = podEvents(record, transitions, status, hintedExits);
    if (events.length === 0 && records.markOf(uid) === "failed") {
      events.push({
        type: "PodSync",
        pod: record.identity,
        container: undefined,
        exitCode: undefined,
        reason: "",
      });
    }
    records.unmark(uid);
    if (isInconsistent) records.mark(uid, "inconsistent");
    const isSaved =
      transitions.length === 0 && samePods(record.emitted, pod) && sameIps(record.ips, status.ips);
    record.emitted = pod;
    record.ips = status.ips;
    if (isSaved && events.length === 0) {
      onUnchanged(uid);
      return;
    }
    journal.commit(record, isKnown() ? events : []);
    onChanged(uid, startedAt);
  }

  #commitRemoved({ uid, startedAt }: Reading): void {
    const { records, cache, journal, hintedExits } = this.#options;
    const record = records.get(uid);
    records.forget(uid);
    if (record) {
      const events = podEvents(record, diffPods(record.emitted, undefined), undefined, hintedExits);
      record.emitted = undefined;
      journal.commit(record, events);
    }
    cache.delete(uid, startedAt);
    this.#options.onChanged(uid, startedAt);
  }

  #fail({ uid, startedAt, signal }: Reading, failure: unknown, listed?: Pod): void {
    if (signal.aborted) return;
    const { records, cache, log, metrics } = this.#options;
    const error = toError(failure);
    metrics.inspectionFailures.inc();
    const identity = records.get(uid)?.identity ?? listed;
    if (!records.markOf(uid)) {
      const pod = identity && { namespace: identity.namespace, name: identity.name };
      log.warn({ errorId: "NK1407", podUid: uid, pod, err: error }, "failed to read pod");
    }
    records.mark(uid, "failed");
    cache.fail({ name: "", namespace: "", ...identity, uid }, error, startedAt);
  }

  // " (ContainerStatus of 3f2a...)": calls about a pod without a response.
  #callsFor(pod: Pod | undefined): string {
    if (!pod) return "";
    const ids = new Set([...pod.containers, ...pod.sandboxes].map(({ id }) => id));
    const calls = this.#options.runtime
      .callsInFlight()
      .flatMap(({ method, id }) => (id !== undefined && ids.has(id) ? [`${method} of ${id}`] : []));
    return calls.length > 0 ? ` (${calls.slice(0, MAX_NAMED).join(", ")})` : "";
  }

  #list(reading: Reading): Promise<Pod | undefined> {
    const { runtime } = this.#options;
    const { uid } = reading;
    return this.#call(reading, `list of pod ${uid}`, undefined, (signal) => runtime.listPod(uid, signal));
  }

  #inspect(reading: Reading, pod: Pod): Promise<PodStatus> {
    this.#options.metrics.inspections.inc();
    const what = `status of pod ${pod.namespace}/${pod.name}`;
    return this.#call(reading, what, pod, (signal) => this.#options.runtime.podStatus(pod, signal));
  }

  #call<T>(
    reading: Reading,
    what: string,
    pod: Pod | undefined,
    work: (signal: AbortSignal) => Promise<T>,
  ): Promise<T> {
    const { limiter, clock, callDeadlineMs } = this.#options;
    let startedAt = 0;
    const onOverdue = () => {
      const waited = Math.round(clock.monotonic() - startedAt);
      this.#fail(
        reading,
        new NodekeeperError(
          "deadline",
          `${what}: no response from the runtime for ${waited} ms${this.#callsFor(pod)}`,
          { id: "NK1404" },
        ),
        pod,
      );
      reading.onOverdue({ what, startedAt });
    };
    const call = () => {
      startedAt = clock.monotonic();
      return withDeadline(clock, callDeadlineMs, what, reading.signal, work);
    };
    return limiter.run(call, reading.signal, onOverdue);
  }
}

function sameIps(one: readonly string[], other: readonly string[]): boolean {
  return one.length === other.length && one.every((ip, at) => ip === other[at]);
}
