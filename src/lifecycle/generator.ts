import { randomUUID } from "node:crypto";
import {
  abortable,
  type Clock,
  childScope,
  codeOf,
  type HealthCheck,
  type Logger,
  type Registry,
  type Runnable,
} from "../lib/index.ts";
import type { Runtime, RuntimeHint } from "../runtime/index.ts";
import type { LifecycleStore } from "../state/index.ts";
import { PodStatusCache, type PodStatusReader } from "./cache.ts";
import { EventLog } from "./event-log.ts";
import { lifecycleHealth } from "./health.ts";
import { type HintState, HintStream } from "./hints.ts";
import { Journal } from "./journal.ts";
import { InspectionLimiter } from "./limiter.ts";
import { createLifecycleMetrics, type LifecycleMetrics } from "./metrics.ts";
import { HintMisses } from "./misses.ts";
import { RelistPacing } from "./pacing.ts";
import { PodRecords } from "./records.ts";
import { Relist } from "./relist.ts";
import { PodRequests } from "./requests.ts";
import { defaultLifecycleSettings, type LifecycleSettings } from "./settings.ts";
import { PodTracker } from "./tracker.ts";

export interface PodLifecycleEventGeneratorOptions {
  runtime: Runtime;
  /** Where events and records outlive the agent; without it they do not. */
  store?: LifecycleStore;
  clock: Clock;
  logger: Logger;
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
  readonly #logger: Logger;
  readonly #settings: LifecycleSettings;
  readonly #metrics: LifecycleMetrics;
  readonly #records = new PodRecords();
  readonly #cache: PodStatusCache;
  readonly #journal: Journal;
  readonly #tracker: PodTracker;
  readonly #relist: Relist;
  readonly #requests: PodRequests;
  readonly #hints: HintStream;
  readonly #misses: HintMisses;
  readonly #pacing: RelistPacing;
  readonly #listedOnce = Promise.withResolvers<void>();
  #restored: boolean | undefined;
  #relistFailedWith: string | undefined;
  #startedAt: number | undefined;

  constructor(options: PodLifecycleEventGeneratorOptions) {
    const { runtime, store, clock, logger, registry } = options;
    const settings = { ...defaultLifecycleSettings, ...options.settings };
    const records = this.#records;
    this.#clock = clock;
    this.#logger = logger;
    this.#settings = settings;
    this.#pacing = new RelistPacing({
      clock,
      shortMs: settings.relistPeriodMs,
      longMs: settings.hintedRelistPeriodMs,
      relaxed: () => this.#hinted && this.#relistFailedWith === undefined,
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
    });
    this.#metrics = metrics;
    this.events = new EventLog({
      capacity: settings.logCapacity,
      clock,
      snapshot: () => records.told(),
      newId: options.newLogId ?? (() => randomUUID().replaceAll("-", "").slice(0, 12)),
      onFellOff: () => metrics.fellOff.inc(),
    });
    // Between relists that are far apart, somebody who waits for news of a pod has it read.
    const cache = new PodStatusCache((podUid) => {
      if (this.#hinted) this.requestRelist(podUid);
    });
    this.statuses = cache;
    this.#cache = cache;
    this.#journal = new Journal({
      log: this.events,
      store,
      capacity: Math.min(settings.logCapacity, settings.savedEvents),
      clock,
      logger,
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
      clock,
      logger,
    });
    this.#requests = new PodRequests({
      limit: settings.requestLimit,
      concurrency: settings.inspections.max,
      read: (podUid, signal) => this.#tracker.read(podUid, signal),
    });
    this.#misses = new HintMisses({
      clock,
      graceMs: settings.hintGraceMs,
      onMissed: (count) => this.#missed(count),
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
      onChange: (podUid) => {
        if (this.#hinted) this.#misses.found(podUid);
      },
    });
    this.#hints = new HintStream({
      runtime,
      clock,
      logger,
      settleMs: settings.hintSettleMs,
      versionPollMs: settings.versionPollMs,
      onHint: (hint) => this.#hint(hint),
      onState: (state) => this.#hintState(state),
      ...(options.random ? { random: options.random } : {}),
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
      const hints = this.#settings.useHints ? this.#hints.run(scope.signal) : undefined;
      await this.#relistLoop(scope.signal).finally(() => scope.abort());
      await hints;
    } finally {
      await this.#tracker.idle();
      this.#misses.reset();
      this.#journal.close();
    }
  }

  /**
   * Resolves once all pods have been read since the start: until then the log's snapshot is empty, or of an earlier run.
   * Rejects with the signal's reason.
   */
  listed(signal: AbortSignal): Promise<void> {
    return abortable(this.#listedOnce.promise, signal);
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
      check: () =>
        lifecycleHealth({
          relist: this.#relist.status,
          startedAt: this.#startedAt,
          now: this.#clock.monotonic(),
          unhealthyAfterMs: this.#settings.unhealthyAfterMs,
          stalePods: this.#records.failed,
        }),
    };
  }

  async #relistLoop(signal: AbortSignal): Promise<void> {
    // How the node is found is a snapshot, not a flood of events; against an earlier run's records it is news.
    let silent = !this.#restored;
    while (!signal.aborted) {
      try {
        this.#pacing.begin();
        await this.#relist.run(silent, signal);
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

  // What could not be read, or is waited for, is read at the short period, even when the relist is far.
  #readSome(): void {
    for (const podUid of [...this.#records.marked(), ...this.#cache.waitedFor()]) this.requestRelist(podUid);
  }

  get #hinted(): boolean {
    return this.#settings.useHints && this.#hints.state === "healthy";
  }

  #listed(startedAt: number): void {
    this.#hints.runtimeAnswered();
    this.#metrics.requestsAnswered.inc(this.#requests.dropBefore(startedAt));
    this.#misses.forgetBefore(startedAt);
    this.#pacing.relax();
  }

  #relistSucceeded(): void {
    this.#listedOnce.resolve();
    if (this.#relistFailedWith === undefined) return;
    this.#logger.info({}, "pods are listed again");
    if (this.#relistFailedWith === "unavailable") this.#hints.runtimeRestarted();
    this.#relistFailedWith = undefined;
  }

  #relistFailed(error: unknown): void {
    const code = codeOf(error);
    this.#metrics.relistFailures.inc({ code });
    // Once for each kind of failure: a runtime that is away fails every second.
    if (this.#relistFailedWith !== code) this.#logger.warn({ err: error }, "pods can't be listed");
    this.#relistFailedWith = code;
  }

  #hint({ podUid }: RuntimeHint): void {
    this.#metrics.hints.inc();
    if (podUid === "") {
      this.#pacing.soon();
      return;
    }
    this.#misses.hinted(podUid);
    this.requestRelist(podUid);
  }

  #hintState(state: HintState): void {
    this.#misses.reset();
    this.#pacing.reset();
    // What happened while nobody told is found now.
    if (state !== "unsupported") this.#pacing.soon();
  }

  #missed(count: number): void {
    this.#metrics.hintMisses.inc(count);
    this.#pacing.distrust();
  }

  #inFlightSeconds(): number {
    const startedAt = this.#relist.status.inFlight?.startedAt;
    return startedAt === undefined ? 0 : (this.#clock.monotonic() - startedAt) / 1000;
  }
}
