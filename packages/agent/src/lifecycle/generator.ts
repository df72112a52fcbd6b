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
import { type PodCacheEntry, PodStatusCache, type PodStatusReader } from "./cache.ts";
import type { LifecycleContext } from "./context.ts";
import { EventLog } from "./event-log.ts";
import { type LifecycleState, lifecycleHealth, runtimeProblems } from "./health.ts";
import { HintStream } from "./hint-stream.ts";
import { Hints } from "./hints.ts";
import { Journal } from "./journal.ts";
import { InspectionLimiter } from "./limiter.ts";
import { createLifecycleMetrics, type LifecycleReadings } from "./metrics.ts";
import { RelistPacing } from "./pacing.ts";
import { PodQueue } from "./pod-queue.ts";
import { PodRecords } from "./records.ts";
import { Relist } from "./relist.ts";
import { completeLifecycleSettings, type LifecycleSettings } from "./settings.ts";
import { logSlowRuntime, probeRuntime } from "./slow-runtime.ts";
import { StartGate } from "./start-gate.ts";
import { PodTracker } from "./tracker.ts";

// How often pods that could not be read are retried while a list call hangs.
const RETRY_MS = 1_000;

export interface PodLifecycleEventGeneratorOptions {
  runtime: Runtime;
  /** Persists events and records. If undefined, they are only kept in memory. */
  store?: LifecycleStore;
  clock: Clock;
  log: Logger;
  /** Each registry accepts one generator. */
  registry: Registry;
  /** Unset fields have the defaults of the configuration. */
  settings?: Partial<LifecycleSettings>;
  random?: () => number;
  newLogId?: () => string;
}

/**
 * Tracks the pods on the node: relists them through the container runtime, emits changes as events in a log,
 * and maintains a cache of pod statuses. The counterpart of the kubelet's GenericPLEG and EventedPLEG
 * (pkg/kubelet/pleg). Container events of the runtime are only hints about which pods to read.
 */
export class PodLifecycleEventGenerator implements Runnable {
  readonly name = "lifecycle";
  /** The event log, for any number of consumers. */
  readonly events: EventLog;
  readonly #context: LifecycleContext;
  readonly #records = new PodRecords();
  readonly #pacing: RelistPacing;
  readonly #queue: PodQueue;
  readonly #hints: Hints;
  readonly #stream: HintStream;
  readonly #cache: PodStatusCache;
  readonly #journal: Journal;
  readonly #limiter: InspectionLimiter;
  readonly #tracker: PodTracker;
  readonly #relist: Relist;
  // Open once the log's snapshot is valid: restored from an earlier process, or built by a relist.
  readonly #known: StartGate;
  // Open once all pods have been read.
  readonly #listed: StartGate;
  #restored: boolean | undefined;
  #relistFailedWith: string | undefined;
  #connections: number;
  #startedAt: number | undefined;

  constructor(options: PodLifecycleEventGeneratorOptions) {
    const { runtime, store, clock, log, registry, random } = options;
    const settings = completeLifecycleSettings(options.settings);
    const metrics = createLifecycleMetrics(registry, this.#readings());
    const context: LifecycleContext = { runtime, clock, log, settings, metrics };
    this.#context = context;
    this.#connections = runtime.connections();
    const gate = () => new StartGate(context, () => this.#state());
    this.#known = gate();
    this.#listed = gate();
    // Each part writes only to parts constructed before it.
    const records = this.#records;
    this.#pacing = new RelistPacing(context);
    const queue = new PodQueue(context, this.#pacing);
    const hints = new Hints(context, this.#pacing, queue, random);
    const cache = new PodStatusCache(hints);
    this.events = new EventLog({
      capacity: settings.logCapacity,
      clock,
      snapshot: () => records.emitted(),
      gate: this.#known,
      newId: options.newLogId ?? (() => randomUUID().replaceAll("-", "").slice(0, 12)),
      onFellOff: () => metrics.fellOff.inc(),
    });
    const journal = new Journal(context, this.events, store);
    this.#limiter = new InspectionLimiter(clock, settings);
    const state = { records, cache, journal, hints, known: this.#known };
    this.#tracker = new PodTracker(context, state, this.#limiter);
    this.#relist = new Relist(context, { tracker: this.#tracker, records, cache, queue, hints });
    this.#stream = new HintStream(context, hints, random);
    this.#queue = queue;
    this.#hints = hints;
    this.#cache = cache;
    this.#journal = journal;
  }

  /** The status cache. */
  get statuses(): PodStatusReader {
    return this.#cache;
  }

  /**
   * Restores the log and records of an earlier agent process. `run` also calls it; call it earlier if
   * consumers read before `run`.
   */
  restore(): void {
    if (this.#restored !== undefined) return;
    this.#restored = this.#journal.restore(this.#records);
    // The restored snapshot is valid immediately. Later changes are emitted as events.
    if (this.#restored) this.#known.open();
  }

  async run(signal: AbortSignal): Promise<void> {
    this.restore();
    const { settings } = this.#context;
    this.#startedAt = this.#context.clock.monotonic();
    using scope = childScope(signal);
    try {
      const others = [
        settings.useRuntimeEvents ? this.#stream.run(scope.signal) : undefined,
        this.#readRequested(scope.signal),
        logSlowRuntime(this.#context, () => this.#state(), scope.signal),
        probeRuntime(this.#context, this.#pacing, scope.signal),
      ];
      await this.#relistLoop(scope.signal).finally(() => scope.abort());
      await Promise.all(others);
    } finally {
      await this.#tracker.idle();
      this.#hints.stop();
      this.#journal.close();
    }
  }

  // Waits for the snapshot. Otherwise container events that the runtime replays before the first relist would
  // be emitted as changes.
  async #readRequested(signal: AbortSignal): Promise<void> {
    await this.#known.wait(signal).catch(() => {});
    await this.#queue.run(signal, (podUid) => this.#tracker.read(podUid, signal));
  }

  /** Whether the log's snapshot is valid: restored from an earlier process, or built by a relist. */
  get isKnown(): boolean {
    return this.#known.isOpen;
  }

  /**
   * Resolves once all pods have been read since the start. Until then the log's snapshot is empty or from an
   * earlier process. Rejects with the signal's reason.
   */
  listed(signal: AbortSignal): Promise<void> {
    return this.#listed.wait(signal);
  }

  /**
   * Like `listed`, with a timeout: throws `unavailable` with the runtime's problems if not all pods have been
   * read within `firstListTimeoutMs` of the start. Later calls wait for one relist period.
   */
  listedSoon(signal: AbortSignal): Promise<void> {
    return this.#listed.waitBriefly(signal);
  }

  /** Returns the current errors and slow calls of the runtime, one line each. */
  problems(): string[] {
    return runtimeProblems(this.#state());
  }

  /** Start of the last successful list, milliseconds since the epoch. Undefined before the first. */
  get listedAt(): number | undefined {
    const { lastSuccessAt } = this.#relist.status;
    if (lastSuccessAt === undefined) return undefined;
    const { clock } = this.#context;
    return Math.round(clock.now() - (clock.monotonic() - lastSuccessAt));
  }

  /**
   * Reads a pod without waiting for a relist. Resolves and rejects like `statuses.getNewerThan` with the
   * current time.
   */
  readNow(podUid: string, signal: AbortSignal): Promise<PodCacheEntry> {
    const reading = this.statuses.getNewerThan(podUid, this.#context.clock.monotonic(), signal);
    // If hints are open, the wait has already requested the reading.
    if (!this.#hints.isOpen) this.requestRelist(podUid);
    return reading;
  }

  /** Requests a reading of one pod. If too many requests are queued, triggers a relist instead. */
  requestRelist(podUid: string): void {
    this.#queue.add(podUid);
  }

  healthCheck(): HealthCheck {
    return {
      name: "PodLifecycleReady",
      kind: "ready",
      check: () => lifecycleHealth(this.#state()),
    };
  }

  #state(): LifecycleState {
    const { runtime, clock, settings } = this.#context;
    return {
      relist: this.#relist.status,
      isListed: this.#listed.isOpen,
      startedAt: this.#startedAt,
      now: clock.monotonic(),
      unhealthyAfterMs: settings.unhealthyAfterMs,
      stalePods: this.#records.failed,
      slowReadings: this.#tracker.slow(),
      callsInFlight: runtime.callsInFlight(),
    };
  }

  async #relistLoop(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      try {
        this.#pacing.begin();
        await this.#relistOnce(signal);
        if (!this.isKnown) this.#journal.begin();
        this.#relistSucceeded();
      } catch (error) {
        if (signal.aborted) return;
        this.#relistFailed(error);
      }
      this.#pacing.end(this.#relistFailedWith !== undefined);
      await this.#pacing.pause(() => this.#readSome(), signal);
    }
  }

  // While a list call hangs, retries pods that could not be read, as between relists.
  async #relistOnce(signal: AbortSignal): Promise<void> {
    const { clock, settings } = this.#context;
    const periodMs = Math.max(settings.relistPeriodMs, RETRY_MS);
    const retry = () => {
      if (this.#relist.status.inFlight?.phase === "list") this.#readSome();
      timer = clock.after(periodMs, retry);
    };
    let timer = clock.after(periodMs, retry);
    try {
      await this.#relist.run(signal);
    } finally {
      timer.cancel();
    }
  }

  // Pods that could not be read, or that callers are waiting for, are read at the short period.
  #readSome(): void {
    for (const podUid of [...this.#records.marked(), ...this.#cache.waitedFor()]) this.requestRelist(podUid);
  }

  #relistSucceeded(): void {
    this.#known.open();
    this.#listed.open();
    // A runtime may restart without a failed call.
    const connections = this.#context.runtime.connections();
    const isReconnected = connections !== this.#connections;
    if (isReconnected || this.#relistFailedWith === "unavailable") this.#hints.restarts.wake();
    this.#connections = connections;
    if (this.#relistFailedWith === undefined) return;
    this.#context.log.info({}, "listing pods succeeded again");
    this.#relistFailedWith = undefined;
  }

  #relistFailed(error: unknown): void {
    const { log, metrics } = this.#context;
    const code = codeOf(error);
    metrics.relistFailures.inc({ code });
    // Logged once per error code, because an unavailable runtime fails every second.
    if (this.#relistFailedWith !== code) log.warn({ err: error }, "failed to list pods");
    this.#relistFailedWith = code;
  }

  #readings(): LifecycleReadings {
    return {
      inFlightSeconds: () => {
        const startedAt = this.#relist.status.inFlight?.startedAt;
        return startedAt === undefined ? 0 : (this.#context.clock.monotonic() - startedAt) / 1000;
      },
      pods: () => this.#records.emitted(),
      stalePods: () => this.#records.failed,
      overdueCalls: () => this.#limiter.overdue,
      inspectionLimit: () => this.#limiter.limit,
      logLength: () => this.events.length,
      consumers: () => this.events.consumers,
      slowestConsumer: () => this.events.slowest,
      hintState: () => this.#hints.state,
      relistPeriodSeconds: () => this.#pacing.periodMs / 1000,
    };
  }
}
