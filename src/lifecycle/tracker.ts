import { type Clock, type Logger, NodekeeperError, toError, withDeadline } from "../lib/index.ts";
import type { ContainerStatus, Pod, PodStatus, Runtime } from "../runtime/index.ts";
import { believe, withKnownIps } from "./believe.ts";
import type { PodStatusCache } from "./cache.ts";
import { diffPods, samePods, type Transition, vanishedRunning } from "./diff.ts";
import type { NewEvent } from "./events.ts";
import type { Journal } from "./journal.ts";
import type { InspectionLimiter } from "./limiter.ts";
import type { LifecycleMetrics } from "./metrics.ts";
import { containerIdentity, type PodRecord, type PodRecords } from "./records.ts";

export interface PodTrackerOptions {
  runtime: Runtime;
  records: PodRecords;
  cache: PodStatusCache;
  journal: Journal;
  limiter: InspectionLimiter;
  metrics: LifecycleMetrics;
  /** How long one call to the runtime may take at the very most, milliseconds. */
  callDeadlineMs: number;
  clock: Clock;
  logger: Logger;
}

/** One reading of one pod. */
interface Reading {
  uid: string;
  /** Monotonic milliseconds, before the runtime was asked. */
  startedAt: number;
  /** Nothing is told: this is how the node was found. */
  silent: boolean;
  signal: AbortSignal;
  /** The runtime is slow with it: nobody should go on waiting. */
  onOverdue: () => void;
}

/**
 * Turns readings of pods into cache entries and events. Whoever had a pod read, and in whatever order: a pod is read
 * once at a time, and a reading counts only if it began after the last one that counted had ended.
 */
export class PodTracker {
  readonly #options: PodTrackerOptions;
  readonly #busy = new Map<string, Promise<void>>();
  readonly #next = new Map<string, Promise<void>>();
  readonly #overdue = new Set<string>();
  // Pods that were read while the list in flight was under way: the list may be older than what is known.
  readonly #readSinceList = new Set<string>();

  constructor(options: PodTrackerOptions) {
    this.#options = options;
  }

  /** A list of all pods is asked for now. */
  listBegins(): void {
    this.#readSinceList.clear();
  }

  /**
   * Takes what a list shows of a pod; undefined when it is not in it. Gives nothing when there is nothing to do, else
   * resolves when the pod is done with, or turned out to take long.
   */
  take(uid: string, listed: Pod | undefined, startedAt: number, silent: boolean, signal: AbortSignal) {
    if (this.#busy.has(uid) || this.#readSinceList.has(uid)) return this.read(uid, signal);
    const { records } = this.#options;
    if (!records.markOf(uid) && samePods(records.get(uid)?.told, listed)) return undefined;
    return this.#start(uid, (onOverdue) =>
      this.#process({ uid, startedAt, silent, signal, onOverdue }, listed),
    );
  }

  /** Reads a pod alone, after the reading of it that is under way. Resolves like `take`; never rejects. */
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

  /** Resolves when no reading is under way. */
  async idle(): Promise<void> {
    while (this.#busy.size + this.#next.size > 0)
      await Promise.all([...this.#busy.values(), ...this.#next.values()]);
  }

  #start(uid: string, work: (onOverdue: () => void) => Promise<void>): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const onOverdue = () => {
      this.#overdue.add(uid);
      resolve();
    };
    const done = work(onOverdue)
      .catch((error) => this.#options.logger.error({ podUid: uid, err: error }, "reading of a pod broke"))
      .finally(() => {
        this.#busy.delete(uid);
        this.#overdue.delete(uid);
        this.#readSinceList.add(uid);
        resolve();
      });
    this.#busy.set(uid, done);
    return promise;
  }

  async #readAlone(uid: string, signal: AbortSignal, onOverdue: () => void): Promise<void> {
    const { records, cache, clock, metrics } = this.#options;
    const reading: Reading = { uid, startedAt: clock.monotonic(), silent: false, signal, onOverdue };
    let listed: Pod | undefined;
    try {
      listed = await this.#list(reading);
    } catch (error) {
      this.#fail(reading, error);
      return;
    }
    if (!records.markOf(uid) && samePods(records.get(uid)?.told, listed))
      cache.observe(uid, reading.startedAt);
    else await this.#process(reading, listed);
    metrics.podRelistDuration.observe((clock.monotonic() - reading.startedAt) / 1000);
  }

  async #process(reading: Reading, listed: Pod | undefined): Promise<void> {
    const { records } = this.#options;
    const { uid } = reading;
    let current = listed;
    let status: PodStatus | undefined;
    try {
      // Lists of a runtime that has just come up can miss what runs: an exit nobody saw is looked at twice.
      if (vanishedRunning(records.get(uid)?.told, current)) current = await this.#list(reading);
      if (current) status = await this.#inspect(reading, current);
    } catch (error) {
      this.#fail(reading, error);
      return;
    }
    if (current && status) this.#commit(reading, current, status);
    else this.#commitGone(reading);
  }

  // Without a break between the cache, the records and the log: whoever looks finds them agreed.
  #commit({ uid, startedAt, silent }: Reading, current: Pod, read: PodStatus): void {
    const { records, cache, journal } = this.#options;
    const believed = believe(current, read);
    const record = records.open(believed);
    const status = withKnownIps(read, record.ips);
    cache.set(uid, status, startedAt);
    const events = eventsOf(record, diffPods(record.told, believed), status);
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
    if (believed !== current) records.mark(uid, "doubted");
    record.told = believed;
    record.ips = status.ips;
    journal.commit(record, silent ? [] : events);
  }

  #commitGone({ uid, startedAt }: Reading): void {
    const { records, cache, journal } = this.#options;
    const record = records.get(uid);
    records.forget(uid);
    if (record) {
      const events = eventsOf(record, diffPods(record.told, undefined), undefined);
      record.told = undefined;
      journal.commit(record, events);
    }
    cache.delete(uid, startedAt);
  }

  #fail({ uid, startedAt, signal }: Reading, thrown: unknown): void {
    if (signal.aborted) return;
    const { records, cache, logger, metrics } = this.#options;
    const error = toError(thrown);
    metrics.inspectionFailures.inc();
    if (!records.markOf(uid))
      logger.warn({ podUid: uid, pod: records.get(uid)?.identity, err: error }, "pod can't be read");
    records.mark(uid, "failed");
    cache.fail(uid, error, startedAt);
  }

  #list(reading: Reading): Promise<Pod | undefined> {
    const { runtime } = this.#options;
    const { uid } = reading;
    return this.#call(reading, `list of pod ${uid}`, (signal) => runtime.listPod(uid, signal));
  }

  #inspect(reading: Reading, pod: Pod): Promise<PodStatus> {
    this.#options.metrics.inspections.inc();
    const what = `status of pod ${pod.namespace}/${pod.name}`;
    return this.#call(reading, what, (signal) => this.#options.runtime.podStatus(pod, signal));
  }

  #call<T>(reading: Reading, what: string, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const { limiter, clock, callDeadlineMs } = this.#options;
    const begun = clock.monotonic();
    const onOverdue = () => {
      const waited = Math.round(clock.monotonic() - begun);
      this.#fail(
        reading,
        new NodekeeperError("deadline", `${what}: no answer from the runtime for ${waited} ms`),
      );
      reading.onOverdue();
    };
    const call = () => withDeadline(clock, callDeadlineMs, what, reading.signal, work);
    return limiter.run(call, reading.signal, onOverdue);
  }
}

function eventsOf(
  record: PodRecord,
  transitions: readonly Transition[],
  status: PodStatus | undefined,
): NewEvent[] {
  const events: NewEvent[] = [];
  const exits = new Map<string, ContainerStatus>();
  for (const container of status?.containers ?? [])
    if (container.state === "exited") exits.set(container.id, container);
  for (const { type, container } of transitions) {
    if (type === "ContainerChanged") continue;
    const exited = type === "ContainerDied" ? exits.get(container.id) : undefined;
    events.push({
      type,
      pod: record.identity,
      container: containerIdentity(record, container),
      exitCode: exited?.exitCode,
      reason: exited?.reason ?? "",
    });
    if (type === "ContainerRemoved") record.containers.delete(container.id);
  }
  return events;
}
