import {
  type DecideInput,
  type Decision,
  decide,
  type EvictionState,
  type PreparedRound,
  prepareRound,
  type RoundInput,
  selectCandidates,
} from "@nodekeeper/api/decide";
import { RoundsIncomplete, StateNotWritable } from "@nodekeeper/api/errors";
import type { EvictionSettings } from "@nodekeeper/api/settings";
import { type HealthCheck, type HealthResult, messageOf, type Runnable } from "@nodekeeper/core/lib";
import type { DecisionEffects } from "./act/decision-effects.ts";
import type { PodEvictor } from "./act/evictor.ts";
import type { EvictionPlugins } from "./ask/plugins.ts";
import { PodOffer } from "./ask/pod-offer.ts";
import type { EvictionContext } from "./context.ts";
import type { EvictionLedger } from "./ledger.ts";
import type { RoundStep } from "./metrics.ts";
import type { NodePods } from "./parts.ts";
import { RecentReadings } from "./readings.ts";
import { gapMark, type RoundTime } from "./round-gap.ts";
import type { RoundPacing, RoundRequest } from "./round-pacing.ts";

export interface EvictionManagerOptions {
  context: Pick<EvictionContext, "nodeName" | "settings" | "policy" | "marks" | "clock" | "log" | "metrics">;
  pods: NodePods;
  plugins: EvictionPlugins;
  evictor: Pick<
    PodEvictor,
    "start" | "resume" | "withdraw" | "forbidden" | "reportInterrupted" | "reportEnded"
  >;
  ledger: EvictionLedger;
  effects: DecisionEffects;
  pacing: RoundPacing;
  /** The host readings of in-tree plugins, discarded at the start of a round. */
  host: { refresh(): void };
}

/**
 * Runs eviction rounds, one at a time: observe pods, call plugins, decide, record, act. Counterpart of katalyst-core
 * `pkg/agent/evictionmanager/manager.go` and of `synchronize` in kubelet `pkg/kubelet/eviction/eviction_manager.go`.
 */
export class EvictionManager implements Runnable {
  readonly name = "eviction";
  readonly #options: EvictionManagerOptions;
  /** Monotonic time at which the last round ended without failing; before the first, when `run` started. */
  #lastDone = 0;
  /** Time, boot and period of the last round that this process decided. */
  #lastInput: RoundTime | undefined;
  /** The plugins' readings in the last rounds. */
  readonly readings = new RecentReadings();
  #last: Pick<Decision, "thresholds" | "refusals"> & { at: number | null } = {
    ...{ at: null, thresholds: [], refusals: [] },
  };
  #isRunning = false;
  #hasDone = false;
  #trouble: string | undefined;

  constructor(options: EvictionManagerOptions) {
    this.#options = options;
  }

  async run(signal: AbortSignal): Promise<void> {
    const { context, plugins, ledger, evictor, effects, pacing } = this.#options;
    const { clock, settings } = context;
    const { stored, accepted, ended } = ledger.restore();
    effects.start(stored);
    if (accepted.length > 0) evictor.resume(accepted);
    for (const outcome of ended) evictor.reportEnded(outcome);
    this.#lastDone = clock.monotonic();
    this.#isRunning = true;
    while (!signal.aborted) {
      const startedAt = clock.monotonic();
      await this.#contained(signal);
      if (signal.aborted) break;
      // Retries soon until the pods are listed, so that the first round does not wait for a whole period.
      const periodMs = this.#hasDone ? settings().syncPeriod : FIRST_LOOK_MS;
      const request = await pacing.next(startedAt + periodMs, signal).catch(() => undefined);
      if (request) this.#startsOutOfTurn(request);
    }
    this.#isRunning = false;
    plugins.close();
    ledger.close();
  }

  #startsOutOfTurn({ plugin, reason }: RoundRequest): void {
    const { log, metrics } = this.#options.context;
    metrics.outOfTurnRounds.inc({ plugin });
    log.debug({ plugin, reason }, "round starts out of turn");
  }

  /** Fails while rounds do not complete, are skipped, fail, or can't be recorded. */
  healthCheck(): HealthCheck {
    return { name: "EvictionRoundsReady", kind: "ready", check: () => this.#check() };
  }

  /** The state after the last round. */
  get state(): EvictionState {
    return this.#options.ledger.state;
  }

  /** Wall milliseconds of the last round that this process decided; null before the first. */
  get lastRoundAt(): number | null {
    return this.#last.at;
  }

  /** The thresholds met in the last round. */
  get thresholds(): Decision["thresholds"] {
    return this.#last.thresholds;
  }

  /** The requests that the last round refused, at most 200 of each plugin. */
  get refusals(): Decision["refusals"] {
    return this.#last.refusals;
  }

  async #contained(signal: AbortSignal): Promise<void> {
    const { log, metrics, clock } = this.#options.context;
    const startedAt = clock.monotonic();
    try {
      const skipped = await this.#round(signal);
      if (skipped === undefined) metrics.roundDuration.observe((clock.monotonic() - startedAt) / 1000);
      metrics.rounds.inc({ result: skipped === undefined ? "done" : "skipped" });
      if (skipped === undefined) this.#hasDone = true;
      else if (this.#trouble !== skipped && this.#hasDone)
        log.warn({ errorId: RoundsIncomplete.id, reason: skipped }, "round skipped");
      this.#trouble = skipped;
      this.#lastDone = clock.monotonic();
    } catch (error) {
      if (signal.aborted) return;
      this.#hasDone = true;
      metrics.rounds.inc({ result: "failed" });
      this.#trouble = `the last round failed: ${messageOf(error)}`;
      log.error({ errorId: RoundsIncomplete.id, err: error }, "round failed");
    }
  }

  /**
   * Returns why the round was skipped; undefined if it completed. Pods, plugins, policy and settings are read once, at
   * the start of the round. Only the protection of pods is read again before an eviction is sent: see `EvictionSender`.
   */
  async #round(signal: AbortSignal): Promise<string | undefined> {
    const { pods: nodePods, plugins, host, context } = this.#options;
    const { nodeName, metrics } = context;
    host.refresh();
    if (!nodePods.isSynced) return "the API server has not listed the pods of this node yet";

    const observed = nodePods.list();
    const pods = observed.map(({ pod }) => pod);
    const policy = structuredClone(context.policy());
    const settings = context.settings();
    using round = plugins.startRound(settings);
    const selection = selectCandidates(pods, nodeName, policy.skip);
    const { candidates } = selection;
    metrics.candidates.set(candidates.length);
    const byUid = new Map(observed.map((one) => [one.pod.uid, one]));
    const offer = new PodOffer(candidates.map(({ uid }) => byUid.get(uid)!));

    const asked = await this.#timed("ask", () => round.ask(offer, signal));
    const answers = round.current(asked);
    const input = this.#input({ nodeName, pods, plugins: answers, policy }, settings);
    this.readings.add(input.now, answers);
    const prepared = this.#timedNow("prepare", () => prepareRound(input, selection));
    const { questions } = prepared;
    const tops = await this.#timed("ask_top", () => round.askTop(offer, questions, signal));
    signal.throwIfAborted();
    if (!round.hasLost) this.#finish({ ...input, tops }, prepared);
    else {
      const left = { ...input, plugins: round.current(answers) };
      this.#finish({ ...left, tops: round.currentTops(tops) }, prepareRound(left, selection));
    }
    return undefined;
  }

  #input(
    observed: Pick<RoundInput, "nodeName" | "pods" | "plugins" | "policy">,
    { syncPeriod }: EvictionSettings,
  ): RoundInput {
    const { evictor, ledger } = this.#options;
    const { now, state, outcomes, interrupted } = ledger.prepare(observed.pods);
    this.#markGap({ at: now, boot: state.boot, periodMs: syncPeriod });
    for (const { eviction, outcome } of interrupted) evictor.reportInterrupted(eviction, outcome);
    return { ...observed, now, outcomes, state };
  }

  #markGap(input: RoundTime): void {
    const gap = this.#lastInput && gapMark(this.#lastInput, input, this.#trouble);
    this.#lastInput = input;
    if (gap) this.#options.context.marks.add([{ ...gap, at: input.at }]);
  }

  // Synchronous: nothing else runs between a decision and acting on it.
  #finish(input: DecideInput, prepared: PreparedRound): void {
    const { ledger, plugins, effects, context } = this.#options;
    const decision = this.#timedNow("decide", () => decide(input, prepared));
    decision.state = ledger.withProgress(decision.state);
    const id = this.#timedNow("record", () => ledger.record(input, decision));
    const marks = effects.report(id, input, decision);
    const { thresholds, refusals } = decision;
    this.#last = { at: input.now, thresholds, refusals };
    this.#count(decision);
    plugins.endRound(decision.conditionProblems);
    this.#timedNow("act", () => this.#act(input, decision));
    context.marks.add(marks);
  }

  #act(input: DecideInput, decision: Decision): void {
    const { evictor, effects } = this.#options;
    const started = decision.withdrawals.filter(({ stage }) => stage === "started");
    if (started.length > 0) evictor.withdraw(started);
    if (decision.resumed.length > 0) evictor.resume(decision.resumed);
    if (decision.victims.length > 0) evictor.start(decision.victims);
    effects.apply(input, decision, evictor.forbidden);
  }

  #count({ victims, dryRunVictims, refusalCounts, conditionProblems, thresholds }: Decision): void {
    const { metrics } = this.#options.context;
    for (const { plugin, kind } of victims) metrics.victims.inc({ plugin, kind });
    for (const { plugin, kind } of dryRunVictims) metrics.dryRunVictims.inc({ plugin, kind });
    for (const { held, unserved } of thresholds) {
      if (held) metrics.heldRounds.inc({ reason: held.reason });
      if (unserved) metrics.unservedRounds.inc({ reason: unserved.reason });
    }
    for (const [reason, count] of Object.entries(refusalCounts)) metrics.refusals.inc({ reason }, count);
    for (const { reason } of conditionProblems) metrics.conditionRefusals.inc({ reason });
  }

  #check(): HealthResult {
    const { context, ledger } = this.#options;
    const { clock, settings } = context;
    if (!this.#isRunning)
      return { ok: false, message: "eviction is not running", errorId: RoundsIncomplete.id };
    const { syncPeriod } = settings();
    const silence = clock.monotonic() - this.#lastDone;
    // Three calls to a plugin of one period each, the wait between rounds, and a margin of one period.
    if (silence > 5 * syncPeriod) {
      const message = `no round completed for ${Math.round(silence / 1000)} s`;
      return { ok: false, message, errorId: RoundsIncomplete.id };
    }
    if (this.#trouble !== undefined)
      return { ok: false, message: this.#trouble, errorId: RoundsIncomplete.id };
    if (ledger.recordError !== undefined) {
      return {
        ok: false,
        message: `rounds can't be recorded: ${ledger.recordError}`,
        errorId: StateNotWritable.id,
      };
    }
    return { ok: true, message: "rounds complete" };
  }

  async #timed<T>(step: RoundStep, work: () => Promise<T>): Promise<T> {
    const startedAt = this.#options.context.clock.monotonic();
    try {
      return await work();
    } finally {
      this.#observe(step, startedAt);
    }
  }

  #timedNow<T>(step: RoundStep, work: () => T): T {
    const startedAt = this.#options.context.clock.monotonic();
    try {
      return work();
    } finally {
      this.#observe(step, startedAt);
    }
  }

  #observe(step: RoundStep, startedAt: number): void {
    const { clock, metrics } = this.#options.context;
    metrics.stepSeconds.inc({ step }, (clock.monotonic() - startedAt) / 1000);
  }
}

const FIRST_LOOK_MS = 50;
