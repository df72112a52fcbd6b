import type { EventRecorder } from "../kube/index.ts";
import {
  type Clock,
  type HealthCheck,
  type HealthResult,
  type Logger,
  messageOf,
  type Runnable,
} from "../lib/index.ts";
import { askTop } from "./ask-top.ts";
import { selectCandidates } from "./candidates.ts";
import { decide } from "./decide.ts";
import type { Decision } from "./decision.ts";
import { Notifier } from "./notifier.ts";
import type { EvictionStep, Evictor, NodePods, Tainter } from "./parts.ts";
import type { EvictionPlugins } from "./plugins.ts";
import { PodOffer } from "./pod-offer.ts";
import type { EvictionPolicy } from "./policy.ts";
import type { EvictionRecords } from "./records.ts";
import type { DecideInput, EvictionOutcome, RoundInput } from "./round.ts";
import type { EvictionRoundMetrics, RoundStep } from "./round-metrics.ts";
import type { EvictionSettings } from "./round-settings.ts";
import { type EvictionState, emptyEvictionState, resumeState } from "./state.ts";
import { TaintGate } from "./taint-gate.ts";

export interface EvictionManagerOptions {
  nodeName: string;
  pods: NodePods;
  plugins: EvictionPlugins;
  evictor: Evictor;
  tainter: Tainter;
  records: EvictionRecords;
  events: Pick<EventRecorder, "record">;
  settings: () => EvictionSettings;
  policy: () => EvictionPolicy;
  clock: Clock;
  log: Logger;
  metrics: EvictionRoundMetrics;
}

/**
 * Runs eviction's rounds, one at a time: observe, ask, decide, write down, act. What is decided is in the state
 * database before anything is done about it, so that an agent killed at any point goes on where it was.
 */
export class EvictionManager implements Runnable {
  readonly name = "eviction";
  readonly #options: EvictionManagerOptions;
  readonly #notifier: Notifier;
  readonly #gate: TaintGate;
  #state: EvictionState = emptyEvictionState();
  // Taken from the evictor and not yet written down.
  #outcomes: EvictionOutcome[] = [];
  #steps: EvictionStep[] = [];
  /** Monotonic: the end of the last round, or the start. */
  #lastDone = 0;
  #isRunning = false;
  #hasDone = false;
  #trouble: string | undefined;
  #recordError: string | undefined;

  constructor(options: EvictionManagerOptions) {
    this.#options = options;
    this.#notifier = new Notifier(options.events, options.clock);
    this.#gate = new TaintGate(options.clock);
  }

  async run(signal: AbortSignal): Promise<void> {
    const { clock, plugins, settings } = this.#options;
    this.#restore();
    this.#lastDone = clock.monotonic();
    this.#isRunning = true;
    while (!signal.aborted) {
      const startedAt = clock.monotonic();
      await this.#contained(signal);
      if (signal.aborted) break;
      // The first list of pods is there in a moment: its round need not wait for a whole period.
      const periodMs = this.#hasDone ? settings().syncPeriodMs : FIRST_LOOK_MS;
      const rest = startedAt + periodMs - clock.monotonic();
      // After a round that took longer than the period, other work gets its turn first.
      await clock.sleep(Math.max(rest, 0), signal).catch(() => {});
    }
    this.#isRunning = false;
    plugins.close();
    this.#saveLastSteps();
  }

  // Outcomes are left: the evictions they belong to are resumed, and end at once.
  #saveLastSteps(): void {
    const { evictor, records, log } = this.#options;
    const steps = [...this.#steps, ...evictor.takeSteps()];
    try {
      records.saveSteps(this.#state, steps);
    } catch (err) {
      log.warn({ err, steps: steps.length }, "last steps of evictions can't be written down");
    }
  }

  /** Fails while rounds do not come to an end, are skipped, fail, or can't be written down. */
  healthCheck(): HealthCheck {
    return { name: "EvictionRoundsReady", kind: "ready", check: () => this.#check() };
  }

  /** What the last round left for the next. */
  get state(): EvictionState {
    return this.#state;
  }

  #restore(): void {
    const { records, evictor, clock, log } = this.#options;
    let stored: EvictionState | undefined;
    try {
      stored = records.loadState();
    } catch (err) {
      log.error({ err }, "state of eviction can't be loaded, starting from nothing");
    }
    this.#state = resumeState(stored ?? emptyEvictionState(), clock.now());
    this.#gate.start(stored);
    if (this.#state.pending.length === 0) return;
    log.info({ pods: this.#state.pending.length }, "going on with evictions that were under way");
    evictor.resume(this.#state.pending);
  }

  async #contained(signal: AbortSignal): Promise<void> {
    const { log, metrics, clock } = this.#options;
    try {
      const skipped = await this.#round(signal);
      metrics.rounds.inc({ result: skipped === undefined ? "done" : "skipped" });
      if (skipped === undefined) this.#hasDone = true;
      else if (this.#trouble !== skipped && this.#hasDone) log.warn({ reason: skipped }, "round skipped");
      this.#trouble = skipped;
      this.#lastDone = clock.monotonic();
    } catch (err) {
      if (signal.aborted) return;
      this.#hasDone = true;
      metrics.rounds.inc({ result: "failed" });
      this.#trouble = `the last round failed: ${messageOf(err)}`;
      log.error({ err }, "round failed");
    }
  }

  /** Gives the reason where the round is skipped. */
  async #round(signal: AbortSignal): Promise<string | undefined> {
    const { pods: nodePods, plugins, policy: currentPolicy, nodeName, clock, metrics } = this.#options;
    if (!nodePods.isSynced) return "the API server has not told the pods of this node yet";

    const observed = nodePods.list();
    const pods = observed.map(({ pod }) => pod);
    const policy = structuredClone(currentPolicy());
    const { candidates } = selectCandidates(pods, nodeName, policy.skip);
    metrics.candidates.set(candidates.length);
    const offered = new Set(candidates.map((pod) => pod.uid));
    const byUid = new Map(observed.map((one) => [one.pod.uid, one]));
    const offer = new PodOffer(candidates.map(({ uid }) => byUid.get(uid)!));

    const answers = await this.#timed("ask", () => plugins.ask(offer, signal));
    const input: RoundInput = {
      now: clock.now(),
      nodeName,
      pods,
      plugins: answers,
      outcomes: [],
      policy,
      state: this.#state,
    };
    const questions = offered.size === 0 ? [] : askTop(input);
    const tops = await this.#timed("ask_top", () => plugins.askTop(offer, questions, signal));
    signal.throwIfAborted();
    this.#finish({ ...input, tops });
    return undefined;
  }

  // In one go, without waiting: between deciding and acting nothing else happens.
  #finish(round: DecideInput): void {
    const { evictor } = this.#options;
    this.#outcomes.push(...evictor.takeOutcomes());
    this.#steps.push(...evictor.takeSteps());
    const input = { ...round, outcomes: [...this.#outcomes] };
    const decision = this.#timedNow("decide", () => decide(input));
    const id = this.#timedNow("record", () => this.#record(input, decision));
    this.#state = decision.state;
    this.#outcomes = [];
    this.#count(decision);
    this.#timedNow("act", () => this.#act(input, decision, id));
  }

  // A full disk must not keep pods from being evicted: it may be what they have to go for. What is lost by a kill then
  // is what was under way; whoever is still to go will be asked for again.
  #record(input: DecideInput, decision: Decision): number {
    const { records, log, metrics } = this.#options;
    let id = 0;
    try {
      id = records.nextId;
      records.save({ id, input, decision }, this.#steps);
      this.#steps = [];
      this.#recordError = undefined;
    } catch (err) {
      metrics.recordFailures.inc();
      // Those of a day without a disk are too many to keep.
      this.#steps = this.#steps.slice(-MOST_WAITING_STEPS);
      if (this.#recordError === undefined)
        log.error({ err }, "round can't be written down, going on without");
      this.#recordError = messageOf(err);
    }
    return id;
  }

  #act(input: DecideInput, decision: Decision, roundId: number): void {
    const { evictor, tainter, log } = this.#options;
    const begun = decision.withdrawals.filter(({ stage }) => stage === "begun");
    if (begun.length > 0) evictor.withdraw(begun);
    if (decision.victims.length > 0) {
      const names = decision.victims.map(({ namespace, name, plugin }) => ({ namespace, name, plugin }));
      log.info({ round: roundId, victims: names }, "evictions begin");
      evictor.begin(decision.victims, roundId);
    }
    tainter.want(decision.taints, this.#gate.isOpen(input));
    this.#notifier.tell(decision.notifications);
  }

  #count({ victims, dryRunVictims, refusalCounts }: Decision): void {
    const { metrics } = this.#options;
    for (const { plugin, kind } of victims) metrics.victims.inc({ plugin, kind });
    for (const { plugin, kind } of dryRunVictims) metrics.dryRunVictims.inc({ plugin, kind });
    for (const [reason, count] of Object.entries(refusalCounts)) metrics.refusals.inc({ reason }, count);
  }

  #check(): HealthResult {
    const { clock, settings } = this.#options;
    if (!this.#isRunning) return { ok: false, message: "eviction does not run" };
    const { syncPeriodMs } = settings();
    const silence = clock.monotonic() - this.#lastDone;
    // Two steps of asking, each as long as the period at most, and the wait between.
    if (silence > 4 * syncPeriodMs)
      return { ok: false, message: `no round for ${Math.round(silence / 1000)} s` };
    if (this.#trouble !== undefined) return { ok: false, message: this.#trouble };
    if (this.#recordError !== undefined) {
      return { ok: false, message: `rounds can't be written down: ${this.#recordError}` };
    }
    return { ok: true, message: "rounds come to their end" };
  }

  async #timed<T>(step: RoundStep, work: () => Promise<T>): Promise<T> {
    const startedAt = this.#options.clock.monotonic();
    try {
      return await work();
    } finally {
      this.#observe(step, startedAt);
    }
  }

  #timedNow<T>(step: RoundStep, work: () => T): T {
    const startedAt = this.#options.clock.monotonic();
    try {
      return work();
    } finally {
      this.#observe(step, startedAt);
    }
  }

  #observe(step: RoundStep, startedAt: number): void {
    const { clock, metrics } = this.#options;
    metrics.roundDuration.observe({ step }, (clock.monotonic() - startedAt) / 1000);
  }
}

const FIRST_LOOK_MS = 50;
const MOST_WAITING_STEPS = 1_000;
