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
import type { PodCacheEntry, PodStatusReader } from "./cache.ts";
import type { LifecycleContext } from "./context.ts";
import type { EventLog } from "./event-log.ts";
import { lifecycleHealth, runtimeProblems } from "./health.ts";
import { HintStream } from "./hint-stream.ts";
import { createLifecycleMetrics } from "./metrics.ts";
import { createLifecycleParts, type LifecycleParts, type LifecyclePartsOptions } from "./parts.ts";
import { Relist } from "./relist.ts";
import { scrapeLifecycle } from "./scraped-metrics.ts";
import { completeLifecycleSettings, type LifecycleSettings } from "./settings.ts";
import { watchRuntime } from "./slow-runtime.ts";
import { PodTracker } from "./tracker.ts";

// How often pods that could not be read are retried while a list call hangs.
const RETRY_MS = 1_000;

export interface PodLifecycleEventGeneratorOptions extends LifecyclePartsOptions {
  runtime: Runtime;
  clock: Clock;
  log: Logger;
  /** Each registry accepts one generator. */
  registry: Registry;
  /** Unset fields have the defaults of the configuration. */
  settings?: Partial<LifecycleSettings>;
  random?: () => number;
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
  readonly #parts: LifecycleParts;
  readonly #tracker: PodTracker;
  readonly #relist: Relist;
  readonly #stream: HintStream;
  #restored: boolean | undefined;
  #relistFailedWith: string | undefined;
  #connections: number;

  constructor(options: PodLifecycleEventGeneratorOptions) {
    const { runtime, clock, log, registry, random = Math.random } = options;
    const settings = completeLifecycleSettings(options.settings);
    const metrics = createLifecycleMetrics(registry);
    const context: LifecycleContext = { runtime, clock, log, settings, metrics, random };
    this.#context = context;
    this.#connections = runtime.connections();
    this.#parts = createLifecycleParts(context, options);
    this.events = this.#parts.events;
    this.#tracker = new PodTracker(context, this.#parts);
    this.#relist = new Relist(context, this.#parts, this.#tracker);
    this.#stream = new HintStream(context, this.#parts.hints);
    scrapeLifecycle(registry, context, this.#parts);
  }

  /** The status cache. */
  get statuses(): PodStatusReader {
    return this.#parts.cache;
  }

  /**
   * Restores the log and records of an earlier agent process. `run` also calls it; call it earlier if
   * consumers read before `run`.
   */
  restore(): void {
    if (this.#restored !== undefined) return;
    const { journal, records, known, current } = this.#parts;
    const restored = journal.restore(records);
    this.#restored = restored !== undefined;
    if (!restored) return;
    // Later changes are emitted as events.
    known.open();
    if (!restored.mayHaveLostEvents) current.open();
  }

  async run(signal: AbortSignal): Promise<void> {
    this.restore();
    const { settings } = this.#context;
    const { progress, pacing, hints, journal } = this.#parts;
    progress.start();
    using scope = childScope(signal);
    try {
      const others = [
        settings.useRuntimeEvents ? this.#stream.run(scope.signal) : undefined,
        this.#readRequested(scope.signal),
        watchRuntime(this.#context, progress, pacing, scope.signal),
      ];
      await this.#relistLoop(scope.signal).finally(() => scope.abort());
      await Promise.all(others);
    } finally {
      await this.#tracker.idle();
      hints.stop();
      journal.close();
    }
  }

  // Waits for the snapshot. Otherwise container events that the runtime replays before the first relist would
  // be emitted as changes.
  async #readRequested(signal: AbortSignal): Promise<void> {
    await this.#parts.known.wait(signal).catch(() => {});
    await this.#parts.queue.run(signal, (podUid) => this.#tracker.read(podUid, signal));
  }

  /** Whether the log's snapshot is valid: restored from an earlier process, or built by a relist. */
  get isKnown(): boolean {
    return this.#parts.known.isOpen;
  }

  /**
   * Resolves once all pods have been read since the start. Until then the log's snapshot is empty or from an
   * earlier process. Rejects with the signal's reason.
   */
  listed(signal: AbortSignal): Promise<void> {
    return this.#parts.listed.wait(signal);
  }

  /**
   * Like `listed`, with a timeout: throws `unavailable` with the runtime's problems if not all pods have been
   * read within `firstListTimeoutMs` of the start. Later calls wait for one relist period.
   */
  listedSoon(signal: AbortSignal): Promise<void> {
    return this.#parts.listed.waitBriefly(signal);
  }

  /** Returns the current errors and slow calls of the runtime, one line each. */
  problems(): string[] {
    return runtimeProblems(this.#parts.progress.state());
  }

  /** Start of the last successful list, milliseconds since the epoch. Undefined before the first. */
  get listedAt(): number | undefined {
    const { lastSuccessAt } = this.#parts.progress.relist;
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
    if (!this.#parts.hints.isOpen) this.requestRelist(podUid);
    return reading;
  }

  /** Requests a reading of one pod. If too many requests are queued, triggers a relist instead. */
  requestRelist(podUid: string): void {
    this.#parts.queue.add(podUid);
  }

  healthCheck(): HealthCheck {
    return {
      name: "PodLifecycleReady",
      kind: "ready",
      check: () => lifecycleHealth(this.#parts.progress.state()),
    };
  }

  async #relistLoop(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      try {
        this.#parts.pacing.begin();
        await this.#relistOnce(signal);
        if (!this.#parts.current.isOpen) this.#parts.journal.begin();
        this.#relistSucceeded();
      } catch (error) {
        if (signal.aborted) return;
        this.#relistFailed(error);
      }
      this.#parts.pacing.end(this.#relistFailedWith !== undefined);
      await this.#parts.pacing.pause(() => this.#readSome(), signal);
    }
  }

  // While a list call hangs, retries pods that could not be read, as between relists.
  async #relistOnce(signal: AbortSignal): Promise<void> {
    const { clock, settings } = this.#context;
    const periodMs = Math.max(settings.relistPeriod, RETRY_MS);
    const retry = () => {
      if (this.#parts.progress.relist.inFlight?.phase === "list") this.#readSome();
      timer = clock.after(periodMs, retry);
    };
    let timer = clock.after(periodMs, retry);
    try {
      await this.#relist.run(signal);
    } finally {
      timer.cancel();
    }
  }

  // Requests readings of the pods whose last reading failed or was inconsistent, and of the pods that callers are
  // waiting for. Returns whether there are any.
  #readSome(): boolean {
    const podUids = [...this.#parts.records.marked(), ...this.#parts.cache.waitedFor()];
    for (const podUid of podUids) this.requestRelist(podUid);
    return podUids.length > 0;
  }

  #relistSucceeded(): void {
    this.#parts.known.open();
    this.#parts.current.open();
    this.#parts.listed.open();
    // A runtime may restart without a failed call.
    const connections = this.#context.runtime.connections();
    const isReconnected = connections !== this.#connections;
    if (isReconnected || this.#relistFailedWith === "unavailable") this.#parts.hints.restarts.wake();
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
}
