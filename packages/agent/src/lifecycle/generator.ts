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
import { defaultLifecycleSettings, type LifecycleSettings } from "./settings.ts";
import { SlowRuntimeLog } from "./slow-runtime-log.ts";
import { PodTracker } from "./tracker.ts";

// How often pods that could not be read are tried again while a list hangs.
const RETRY_MS = 1_000;

export interface PodLifecycleEventGeneratorOptions {
  runtime: Runtime;
  /** Where events and records outlive the agent; without it they do not. */
  store?: LifecycleStore;
  clock: Clock;
  log: Logger;
  /** One generator for each registry. */
  registry: Registry;
  settings?: Partial<LifecycleSettings>;
  random?: () => number;
  newLogId?: () => string;
}

/**
 * Knows what runs on the node: asks the runtime, tells what changed as events of a log, and keeps a cache of pod
 * statuses. The runtime's own events, where it has them, only say which pod to look at.
 */
export class PodLifecycleEventGenerator implements Runnable {
  readonly name = "lifecycle";
  /** The events, for any number of consumers. */
  readonly events: EventLog;
  /** What every pod is like, with waiting for news. */
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
    const settings = { ...defaultLifecycleSettings, ...options.settings };
    const records = this.#records;
    this.#runtime = runtime;
    this.#clock = clock;
    this.#log = log;
    this.#settings = settings;
    this.#pacing = new RelistPacing({
      clock,
      shortMs: settings.relistPeriodMs,
      longMs: settings.hintedRelistPeriodMs,
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
      patienceMs: settings.inspectionPatienceMs,
      maxOverdue: settings.maxOverdue,
    });
    const metrics: LifecycleMetrics = createLifecycleMetrics(registry, {
      inFlightSeconds: () => this.#inFlightSeconds(),
      pods: () => records.told(),
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
      snapshot: () => records.told(),
      // What an earlier run left is known, and what changed since comes as events.
      whenKnown: (signal) => (this.isKnown ? undefined : this.listed(signal)),
      newId: options.newLogId ?? (() => randomUUID().replaceAll("-", "").slice(0, 12)),
      onFellOff: () => metrics.fellOff.inc(),
    });
    // A pod that is waited for is read before the next relist, where that is far.
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

  /** Brings back the log and the records of an earlier run. `run` does it too; consumers may come before that. */
  restore(): void {
    this.#restored ??= this.#journal.restore(this.#records);
  }

  async run(signal: AbortSignal): Promise<void> {
    this.restore();
    this.#startedAt = this.#clock.monotonic();
    using scope = childScope(signal);
    // Until the node is known, events that the runtime replays would be told as news.
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

  /** Whether the log's snapshot shows the node: as an earlier run left it, or as it is. */
  get isKnown(): boolean {
    return this.#restored === true || this.#firstList.isDone;
  }

  /**
   * Resolves once all pods have been read since the start: until then the log's snapshot is empty, or of an earlier run.
   * Rejects with the signal's reason.
   */
  listed(signal: AbortSignal): Promise<void> {
    return this.#firstList.wait(signal);
  }

  /**
   * As `listed`, with a bound: throws `unavailable`, with what the runtime is at, where no list has succeeded until
   * `firstListTimeoutMs` after the start; after that it waits for one period.
   */
  listedSoon(signal: AbortSignal): Promise<void> {
    return this.#firstList.waitBriefly(signal);
  }

  /** What is wrong with the runtime, or slow, now; empty where nothing is. Each is one line for a person. */
  problems(): string[] {
    return runtimeProblems(this.#state());
  }

  /** When the last list that succeeded began, wall milliseconds; undefined before the first. */
  get listedAt(): number | undefined {
    const { lastSuccessAt } = this.#relist.status;
    if (lastSuccessAt === undefined) return undefined;
    return Math.round(this.#clock.now() - (this.#clock.monotonic() - lastSuccessAt));
  }

  /** Has one pod read at once. Nothing is lost when too many ask: a relist of all pods stands in then. */
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
    // How the node is found is a snapshot, not a flood of events; against an earlier run's records it is news.
    let silent = !this.#restored;
    while (!signal.aborted) {
      try {
        this.#pacing.begin();
        await this.#relistOnce(silent, signal);
        if (silent) {
          this.#journal.begin();
          this.#requests.open(signal);
        }
        silent = false;
        this.#relistSucceeded();
      } catch (error) {
        if (signal.aborted) return;
        this.#relistFailed(error);
      }
      await this.#pacing.pause(() => this.#readSome(), signal);
    }
  }

  // While a list hangs, pods that could not be read are tried again as they are between relists.
  async #relistOnce(silent: boolean, signal: AbortSignal): Promise<void> {
    const periodMs = Math.max(this.#settings.relistPeriodMs, RETRY_MS);
    const retry = () => {
      if (this.#relist.status.inFlight?.phase === "list") this.#readSome();
      timer = this.#clock.after(periodMs, retry);
    };
    let timer = this.#clock.after(periodMs, retry);
    try {
      await this.#relist.run(silent, signal);
    } finally {
      timer.cancel();
    }
  }

  // What could not be read, or is waited for, is read at the short period, even when the relist is far.
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
    this.#log.info({}, "pods are listed again");
    if (this.#relistFailedWith === "unavailable") this.#hints.runtimeRestarted();
    this.#relistFailedWith = undefined;
  }

  #relistFailed(error: unknown): void {
    const code = codeOf(error);
    this.#metrics.relistFailures.inc({ code });
    // Once for each kind of failure: a runtime that is away fails every second.
    if (this.#relistFailedWith !== code) this.#log.warn({ err: error }, "pods can't be listed");
    this.#relistFailedWith = code;
  }

  #inFlightSeconds(): number {
    const startedAt = this.#relist.status.inFlight?.startedAt;
    return startedAt === undefined ? 0 : (this.#clock.monotonic() - startedAt) / 1000;
  }
}
