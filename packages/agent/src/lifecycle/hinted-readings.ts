import type { Clock, Logger } from "@nodekeeper/core/lib";
import type { Runtime, RuntimeHint } from "../runtime/index.ts";
import { HintedExits } from "./hinted-exits.ts";
import { type HintState, HintStream } from "./hints.ts";
import type { LifecycleMetrics } from "./metrics.ts";
import { HintMisses } from "./misses.ts";
import type { RelistPacing } from "./pacing.ts";
import { Rechecks } from "./rechecks.ts";
import type { LifecycleSettings } from "./settings.ts";

export interface HintedReadingsOptions {
  runtime: Runtime;
  clock: Clock;
  log: Logger;
  settings: LifecycleSettings;
  metrics: LifecycleMetrics;
  /** Relists early if a hint names no pod, or if hints are not reliable. */
  pacing: RelistPacing;
  /** Requests a reading of one pod. */
  read: (podUid: string) => void;
  random?: () => number;
}

/**
 * Handles container events of the runtime as hints:
 *
 * 1. A pod named by a hint is read immediately, and again shortly afterwards if it had not changed.
 * 2. A change found by a relist without a hint counts as a miss; relists use the short period for a while.
 * 3. Exits in events are kept for containers that are removed before they can be inspected.
 */
export class HintedReadings {
  readonly exits = new HintedExits();
  readonly #options: HintedReadingsOptions;
  readonly #stream: HintStream;
  readonly #rechecks: Rechecks;
  readonly #misses: HintMisses;

  constructor(options: HintedReadingsOptions) {
    this.#options = options;
    const { runtime, clock, log, settings, random, read } = options;
    this.#rechecks = new Rechecks({ clock, limit: settings.requestLimit, read });
    this.#misses = new HintMisses({
      clock,
      graceMs: settings.hintGraceMs,
      onMissed: (count) => this.#missed(count),
    });
    this.#stream = new HintStream({
      runtime,
      clock,
      log,
      minStreamMs: settings.minStreamMs,
      versionPollMs: settings.versionPollMs,
      onHint: (hint) => this.#take(hint),
      onState: (state) => this.#entered(state),
      ...(random ? { random } : {}),
    });
  }

  get state(): HintState {
    return this.#stream.state;
  }

  /** State of the event stream. */
  get isHealthy(): boolean {
    return this.#options.settings.useRuntimeEvents && this.#stream.state === "healthy";
  }

  /** Whether hints are reliable enough for the long relist period. */
  get isProven(): boolean {
    return this.#options.settings.useRuntimeEvents && this.#stream.isProven;
  }

  /** Follows the runtime's events until the signal aborts, if they are enabled. */
  async run(signal: AbortSignal): Promise<void> {
    if (this.#options.settings.useRuntimeEvents) await this.#stream.run(signal);
  }

  /** Called when a list of all pods, started at `startedAt` (monotonic milliseconds), succeeded, before its changes. */
  listed(startedAt: number): void {
    this.#stream.runtimeAnswered();
    this.#misses.forgetBefore(startedAt);
    this.#rechecks.listed(startedAt);
  }

  /** Called for each pod that changed since the previous list, with the start of that list. */
  foundByList(podUid: string, previousAt: number): void {
    // A change counts as a miss only if the stream was open since the previous list.
    if (this.#stream.isOpenSince(previousAt)) this.#misses.found(podUid);
  }

  /** Called when a single pod was read and had not changed. */
  unchanged(podUid: string): void {
    this.#rechecks.unchanged(podUid);
  }

  /** Called when a reading of a pod, started at `startedAt`, found a change. */
  changed(podUid: string, startedAt: number): void {
    this.#rechecks.changed(podUid, startedAt);
  }

  /** Called when the runtime is reachable again. */
  runtimeRestarted(): void {
    this.#stream.runtimeRestarted();
  }

  /** Cancels timers. */
  stop(): void {
    this.#rechecks.stop();
    this.#misses.reset();
  }

  #take({ podUid, exits }: RuntimeHint): void {
    const { metrics, pacing, read } = this.#options;
    metrics.hints.inc();
    this.exits.add(exits);
    if (podUid === "") {
      pacing.soon();
      return;
    }
    this.#misses.hinted(podUid);
    this.#rechecks.hinted(podUid);
    read(podUid);
  }

  #entered(state: HintState): void {
    this.#misses.reset();
    // Finds changes that happened while there were no hints.
    if (state !== "unsupported") this.#options.pacing.soon();
  }

  #missed(count: number): void {
    this.#options.metrics.hintMisses.inc(count);
    this.#options.pacing.distrust();
  }
}
