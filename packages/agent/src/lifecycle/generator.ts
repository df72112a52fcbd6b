import { randomUUID } from "node:crypto";
import {
  type Clock,
  childScope,
  codeOf,
  type HealthCheck,
  type Logger,
  type Registry,
  type Runnable,
} from "@nodekeeper/core/lib";
import type { Runtime } from "../runtime/index.ts";
import type { LifecycleStore } from "../state/index.ts";
import { PodStatusCache, type PodStatusReader } from "./cache.ts";
import { EventLog } from "./event-log.ts";
import { FirstList } from "./first-list.ts";
import { type LifecycleState, lifecycleHealth, runtimeProblems } from "./health.ts";
import { HintedReadings } from "./hinted-readings.ts";
import { Journal } from "./journal.ts";
import { InspectionLimiter } from "./limiter.ts";
import { createLifecycleMetrics, type LifecycleMetrics } from "./metrics.ts";
import { RelistPacing } from "./pacing.ts";
import { PodRecords } from "./records.ts";
import { Relist } from "./relist.ts";
import { PodRequests } from "./requests.ts";
import { completeLifecycleSettings, type LifecycleSettings } from "./settings.ts";
import { SlowRuntimeLog } from "./slow-runtime-log.ts";
import { PodTracker } from "./tracker.ts";

// Interval of retries for pods that could not be read, while a list call hangs.
const RETRY_MS = 1_000;

export interface PodLifecycleEventGeneratorOptions {
  runtime: Runtime;
  /** Where events and records are persisted; without it they are only kept in memory. */
  store?: LifecycleStore;
  clock: Clock;
  log: Logger;
  /** One generator for each registry. */
  registry: Registry;
  /** What is not given is as the configuration has it by default. */
  settings?: Partial<LifecycleSettings>;
  random?: () => number;
  newLogId?: () => string;
}

/**
 * Tracks the pods on the node: relists them through the container runtime, emits changes as events in a log, and keeps
 * a cache of pod statuses. The counterpart of the kubelet's GenericPLEG and EventedPLEG (pkg/kubelet/pleg). Container
 * events of the runtime are only hints about which pods to read.
 */
export class PodLifecycleEventGenerator implements Runnable {
  readonly name = "lifecycle";
  /** The event log, for any number of consumers. */
  readonly events: EventLog;
  /** The status cache. */
  readonly statuses: PodStatusReader;
  readonly #clock: Clock;
  readonly #log: Logger;
  readonly #settings: LifecycleSettings;
  readonly #metrics: LifecycleMetrics;
  readonly #records = new PodRecords();
  readonly #cache: PodStatusCache;
  readonly #journal: Journal;
  readonly #tracker: PodTracker;
  readonly #relist: Relist;
  readonly #requests: PodRequests;
  readonly #hints: HintedReadings;
  readonly #pacing: RelistPacing;
  readonly #slowLog: SlowRuntimeLog;
  readonly #runtime: Runtime;
  readonly #firstList: FirstList;
  #restored: boolean | undefined;
  #relistFailedWith: string | undefined;
  #startedAt: number | undefined;

  constructor(options: PodLifecycleEventGeneratorOptions) {
    const { runtime, store, clock, log, registry } = options;
    const settings = completeLifecycleSettings(options.settings);
    const records = this.#records;
    this.#runtime = runtime;
    this.#clock = clock;
    this.#log = log;
    this.#settings = settings;
    this.#pacing = new RelistPacing({
      clock,
      shortMs: settings.relistPeriodMs,
      longMs: settings.eventedRelistPeriodMs,
      distrustMs: settings.hintDistrustMs,
      relaxed: () => this.#hints.isProven && this.#relistFailedWith === undefined,
    });
    this.#firstList = new FirstList({
      clock,
      timeoutMs: settings.firstListTimeoutMs,
      periodMs: settings.relistPeriodMs,
      startedAt: () => this.#startedAt,
      explain: () => lifecycleHealth(this.#state()).message,
    });
    const limiter = new InspectionLimiter({
      clock,
      ...settings.inspections,
      timeoutMs: settings.inspectionPatienceMs,
      maxOverdue: settings.maxOverdue,
    });
    const metrics: LifecycleMetrics = createLifecycleMetrics(registry, {
      inFlightSeconds: () => this.#inFlightSeconds(),
      pods: () => records.emitted(),
      stalePods: () => records.failed,
      overdueCalls: () => limiter.overdue,
      inspectionLimit: () => limiter.limit,
      logLength: () => this.events.length,
      consumers: () => this.events.consumers,
      slowestConsumer: () => this.events.slowest,
      hintState: () => this.#hints.state,
      relistPeriodSeconds: () => this.#pacing.periodMs / 1000,
    });
    this.#metrics = metrics;
    this.#hints = new HintedReadings({
      runtime,
      clock,
      log,
      settings,
      metrics,
      pacing: this.#pacing,
      read: (podUid) => this.requestRelist(podUid),
      ...(options.random ? { random: options.random } : {}),
    });
    this.events = new EventLog({
      capacity: settings.logCapacity,
      clock,
      snapshot: () => records.emitted(),
      // After a restored run the snapshot is valid immediately; changes since then are emitted as events.
      whenKnown: (signal) => (this.isKnown ? undefined : this.listed(signal)),
      newId: options.newLogId ?? (() => randomUUID().replaceAll("-", "").slice(0, 12)),
      onFellOff: () => metrics.fellOff.inc(),
    });
    // A pod that a caller waits for is read early if the next relist is not due soon.
    const cache = new PodStatusCache((podUid) => {
      if (this.#hints.isHealthy) this.requestRelist(podUid);
    });
    this.statuses = cache;
    this.#cache = cache;
    this.#journal = new Journal({
      events: this.events,
      store,
      capacity: Math.min(settings.logCapacity, settings.savedEvents),
      clock,
      log,
      onFailure: () => metrics.saveFailures.inc(),
    });
    this.#tracker = new PodTracker({
      runtime,
      records,
      cache,
      journal: this.#journal,
      limiter,
      metrics,
      callDeadlineMs: settings.callDeadlineMs,
      isKnown: () => this.isKnown,
      hintedExits: this.#hints.exits,
      onUnchanged: (podUid) => this.#hints.unchanged(podUid),
      onChanged: (podUid, startedAt) => this.#hints.changed(podUid, startedAt),
      clock,
      log,
    });
    this.#slowLog = new SlowRuntimeLog({ clock, log, state: () => this.#state() });
    this.#requests = new PodRequests({
      limit: settings.requestLimit,
      concurrency: settings.inspections.max,
      read: (podUid, signal) => this.#tracker.read(podUid, signal),
    });
    this.#relist = new Relist({
      runtime,
      tracker: this.#tracker,
      records,
      cache,
      metrics,
      clock,
      listDeadlineMs: settings.callDeadlineMs,
      onListed: (startedAt) => this.#listed(startedAt),
      onChange: (podUid) => this.#hints.foundByList(podUid, this.#relist.status.previousSuccessAt),
    });
  }

  /** Restores the log and records of an earlier agent process. `run` also does; call it if consumers come before. */
  restore(): void {
    this.#restored ??= this.#journal.restore(this.#records);
  }

  async run(signal: AbortSignal): Promise<void> {
    this.restore();
    this.#startedAt = this.#clock.monotonic();
    using scope = childScope(signal);
    // Container events replayed by the runtime before the first relist would be emitted as changes.
    if (this.#restored) this.#requests.open(scope.signal);
    try {
      const others = [this.#hints.run(scope.signal), this.#slowLog.run(scope.signal)];
      await this.#relistLoop(scope.signal).finally(() => scope.abort());
      await Promise.all(others);
    } finally {
      this.#hints.stop();
      await this.#tracker.idle();
      this.#hints.stop();
      this.#journal.close();
    }
  }

  /** Whether the log's snapshot is valid: restored from an earlier process, or from a relist. */
  get isKnown(): boolean {
    return this.#restored === true || this.#firstList.isDone;
  }

  /**
   * Resolves once all pods have been read since the start. Before that the log's snapshot is empty or from an earlier
   * process. Rejects with the signal's reason.
   */
  listed(signal: AbortSignal): Promise<void> {
    return this.#firstList.wait(signal);
  }

  /**
   * Like `listed`, with a time limit: throws `unavailable` with the runtime's problems if no list has succeeded
   * `firstListTimeoutMs` after the start; later calls wait for one relist period.
   */
  listedSoon(signal: AbortSignal): Promise<void> {
    return this.#firstList.waitBriefly(signal);
  }

  /** Current errors and slow calls of the runtime, one line each. */
  problems(): string[] {
    return runtimeProblems(this.#state());
  }

  /** Start of the last successful list, milliseconds since the epoch; undefined before the first. */
  get listedAt(): number | undefined {
    const { lastSuccessAt } = this.#relist.status;
    if (lastSuccessAt === undefined) return undefined;
    return Math.round(this.#clock.now() - (this.#clock.monotonic() - lastSuccessAt));
  }

  /** Requests a reading of one pod. If too many requests are queued, all pods are relisted instead. */
  requestRelist(podUid: string): void {
    if (this.#requests.add(podUid, this.#clock.monotonic())) return;
    this.#metrics.requestsRefused.inc();
    this.#pacing.soon();
  }

  healthCheck(): HealthCheck {
    return {
      name: "PodLifecycleReady",
      kind: "ready",
      check: () => lifecycleHealth(this.#state()),
    };
  }

  #state(): LifecycleState {
    return {
      relist: this.#relist.status,
      isListed: this.#firstList.isDone,
      startedAt: this.#startedAt,
      now: this.#clock.monotonic(),
      unhealthyAfterMs: this.#settings.unhealthyAfterMs,
      stalePods: this.#records.failed,
      slowReadings: this.#tracker.slow(),
      callsInFlight: this.#runtime.callsInFlight(),
    };
  }

  async #relistLoop(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      try {
        this.#pacing.begin();
        await this.#relistOnce(signal);
        if (!this.isKnown) {
          this.#journal.begin();
          this.#requests.open(signal);
        }
        this.#relistSucceeded();
      } catch (error) {
        if (signal.aborted) return;
        this.#relistFailed(error);
      }
      await this.#pacing.pause(() => this.#readSome(), signal);
    }
  }

  // While a list call hangs, pods that could not be read are retried as between relists.
  async #relistOnce(signal: AbortSignal): Promise<void> {
    const periodMs = Math.max(this.#settings.relistPeriodMs, RETRY_MS);
    const retry = () => {
      if (this.#relist.status.inFlight?.phase === "list") this.#readSome();
      timer = this.#clock.after(periodMs, retry);
    };
    let timer = this.#clock.after(periodMs, retry);
    try {
      await this.#relist.run(signal);
    } finally {
      timer.cancel();
    }
  }

  // Pods that could not be read, or that callers wait for, are read at the short period.
  #readSome(): void {
    for (const podUid of [...this.#records.marked(), ...this.#cache.waitedFor()]) this.requestRelist(podUid);
  }

  #listed(startedAt: number): void {
    this.#metrics.requestsAnswered.inc(this.#requests.dropBefore(startedAt));
    this.#hints.listed(startedAt);
  }

  #relistSucceeded(): void {
    this.#firstList.done();
    if (this.#relistFailedWith === undefined) return;
    this.#log.info({}, "listing pods succeeded again");
    if (this.#relistFailedWith === "unavailable") this.#hints.runtimeRestarted();
    this.#relistFailedWith = undefined;
  }

  #relistFailed(error: unknown): void {
    const code = codeOf(error);
    this.#metrics.relistFailures.inc({ code });
    // Logged once for each error code, since an unavailable runtime fails every second.
    if (this.#relistFailedWith !== code) this.#log.warn({ err: error }, "failed to list pods");
    this.#relistFailedWith = code;
  }

  #inFlightSeconds(): number {
    const startedAt = this.#relist.status.inFlight?.startedAt;
    return startedAt === undefined ? 0 : (this.#clock.monotonic() - startedAt) / 1000;
  }
}
