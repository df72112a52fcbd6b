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
  /** Brought forward where a hint names no pod, and where hints can't be relied on. */
  pacing: RelistPacing;
  /** Has one pod read at once. */
  read: (podUid: string) => void;
  random?: () => number;
}

/**
 * What the runtime's events lead to:
 *
 * 1. A pod that is named is read at once, and again shortly after where nothing of it is new.
 * 2. A list that shows a change which no hint was sent for counts as a miss, and lists come at the short period for a while.
 * 3. Exits that events carry are remembered for containers that are removed before they can be inspected.
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
      settleMs: settings.hintSettleMs,
      versionPollMs: settings.versionPollMs,
      onHint: (hint) => this.#take(hint),
      onState: (state) => this.#entered(state),
      ...(random ? { random } : {}),
    });
  }

  get state(): HintState {
    return this.#stream.state;
  }

  /** Whether hints come, as far as is known. */
  get isHealthy(): boolean {
    return this.#options.settings.useHints && this.#stream.state === "healthy";
  }

  /** Whether pods may be listed rarely. */
  get isProven(): boolean {
    return this.#options.settings.useHints && this.#stream.isProven;
  }

  /** Follows the runtime's events until the signal aborts, where they are to be used. */
  async run(signal: AbortSignal): Promise<void> {
    if (this.#options.settings.useHints) await this.#stream.run(signal);
  }

  /** A list of all pods that began then, monotonic milliseconds, has succeeded; what it shows changed follows. */
  listed(startedAt: number): void {
    this.#stream.runtimeAnswered();
    this.#misses.forgetBefore(startedAt);
    this.#rechecks.listed(startedAt);
  }

  /** A list shows a change of the pod since the list before, which began then. */
  foundByList(podUid: string, previousAt: number): void {
    // What happened since could have been hinted only where the stream was open by then.
    if (this.#stream.isOpenSince(previousAt)) this.#misses.found(podUid);
  }

  /** A pod was read alone, and is as it was. */
  unchanged(podUid: string): void {
    this.#rechecks.unchanged(podUid);
  }

  /** A reading of a pod that began then found something new. */
  changed(podUid: string, startedAt: number): void {
    this.#rechecks.changed(podUid, startedAt);
  }

  /** The runtime was unreachable and is back. */
  runtimeRestarted(): void {
    this.#stream.runtimeRestarted();
  }

  /** Ends what is due. */
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
    // What happened while there were no hints is found now.
    if (state !== "unsupported") this.#options.pacing.soon();
  }

  #missed(count: number): void {
    this.#options.metrics.hintMisses.inc(count);
    this.#options.pacing.distrust();
  }
}
