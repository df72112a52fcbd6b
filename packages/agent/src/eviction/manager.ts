import type { EventRecorder } from "@nodekeeper/core/kube";
import {
  type BootTime,
  type Clock,
  elapsedSince,
  type HealthCheck,
  type HealthResult,
  type Logger,
  messageOf,
  type Runnable,
} from "@nodekeeper/core/lib";
import type { NewMark } from "../state/index.ts";
import type { HostPathNotifier } from "./act/host-path-notifier.ts";
import { Notifier } from "./act/notifier.ts";
import { TaintGate } from "./act/taint-gate.ts";
import type { EvictionPlugins } from "./ask/plugins.ts";
import { PodOffer } from "./ask/pod-offer.ts";
import type { BlockedEvictions } from "./blocked-evictions.ts";
import { selectCandidates } from "./decide/candidates.ts";
import { conditionChanges, conditionChangeText } from "./decide/condition-changes.ts";
import { decide } from "./decide/decide.ts";
import type { Decision } from "./decide/decision.ts";
import { interruptedOutcomes } from "./decide/interrupted.ts";
import type { EvictionOutcome } from "./decide/outcome.ts";
import { isFinal } from "./decide/outcome.ts";
import { type EvictionPolicy, isFullDryRun } from "./decide/policy.ts";
import { type PreparedRound, prepareRound } from "./decide/prepare.ts";
import type { DecideInput, RoundInput } from "./decide/round.ts";
import {
  type EvictionProgress,
  type EvictionState,
  emptyEvictionState,
  type PendingEviction,
  resumeState,
  stateAt,
  withProgress,
} from "./decide/state.ts";
import type { EvictionStep, Evictor, NodePods, Tainter } from "./parts.ts";
import { RecentReadings } from "./readings.ts";
import { DecisionLog } from "./records/decision-log.ts";
import { HeldLog } from "./records/held-log.ts";
import type { EvictionRecords } from "./records/records.ts";
import { gapMark, type RoundTime } from "./round-gap.ts";
import type { EvictionRoundMetrics, RoundStep } from "./round-metrics.ts";
import { RoundPacing, type RoundRequest } from "./round-pacing.ts";
import type { EvictionSettings } from "./round-settings.ts";

export interface EvictionManagerOptions {
  nodeName: string;
  pods: NodePods;
  plugins: EvictionPlugins;
  evictor: Evictor;
  tainter: Tainter;
  /** States which evictions are not possible. */
  blocked: Pick<BlockedEvictions, "note">;
  records: EvictionRecords;
  events: Pick<EventRecorder, "record">;
  /** Notifies pods of soft evictions by files, besides Events; undefined where no path is configured. */
  hostPathNotifier?: Pick<HostPathNotifier, "notify"> | undefined;
  /** Called with a message for each condition that is set or cleared. */
  onNodeEvent: (message: string, plugin: string) => void;
  /** Called with what a round decided, after it is acted on. */
  onMarks: (marks: readonly NewMark[]) => void;
  settings: () => EvictionSettings;
  policy: () => EvictionPolicy;
  /** Called when a round starts, so that in-tree plugins use new host readings, and the settings of this time. */
  onRoundStart?: () => void;
  /** Boot ID and uptime of the machine, to determine how long the agent was not running. */
  bootTime: () => BootTime | undefined;
  clock: Clock;
  log: Logger;
  metrics: EvictionRoundMetrics;
}

/**
 * Runs eviction rounds, one at a time: observe pods, call plugins, decide, record, act. The counterpart of katalyst-core
 * `pkg/agent/evictionmanager/manager.go` and of `synchronize` in kubelet `pkg/kubelet/eviction/eviction_manager.go`.
 *
 * 1. Decisions are in the state database before they are acted on, that a request is about to be sent before it is sent,
 *    and acceptances as soon as they are known. After SIGKILL at any point no pod is evicted twice, and an eviction that
 *    was not accepted is decided again.
 * 2. An eviction leaves the state in the transaction that records its final outcome.
 * 3. Durations are measured by the monotonic clock: when the wall clock is stepped, the times of the state are moved by
 *    the same amount.
 */
export class EvictionManager implements Runnable {
  readonly name = "eviction";
  readonly #options: EvictionManagerOptions;
  readonly #notifier: Notifier;
  readonly #gate: TaintGate;
  readonly #pacing: RoundPacing;
  readonly #held: HeldLog;
  #state: EvictionState = emptyEvictionState();
  /** The monotonic time that corresponds to the state's time `at`. */
  #stateAt = 0;
  // Taken from the evictor and not recorded yet.
  #outcomes: EvictionOutcome[] = [];
  /** What is known of evictions since the round was prepared; monotonic times. */
  #progress: EvictionProgress[] = [];
  #steps: EvictionStep[] = [];
  /** Monotonic time of the end of the last round, or of the start. */
  #lastDone = 0;
  /** When this agent decided its last round. */
  #lastInput: RoundTime | undefined;
  readonly #decisionLog: DecisionLog;
  /** What the plugins answered in the last rounds. */
  readonly readings = new RecentReadings();
  #thresholds: Decision["thresholds"] = [];
  #refusals: Decision["refusals"] = [];
  #isRunning = false;
  #hasDone = false;
  #trouble: string | undefined;
  #recordError: string | undefined;

  constructor(options: EvictionManagerOptions) {
    this.#options = options;
    this.#notifier = new Notifier(options.events, options.clock);
    this.#gate = new TaintGate(options.clock);
    this.#decisionLog = new DecisionLog(options.log);
    this.#pacing = new RoundPacing(options.clock);
    this.#held = new HeldLog(options.log);
  }

  async run(signal: AbortSignal): Promise<void> {
    const { clock, plugins, settings, evictor } = this.#options;
    const stopListening = evictor.onProgress((progress) => this.#advanced(progress));
    this.#restore();
    this.#lastDone = clock.monotonic();
    this.#isRunning = true;
    while (!signal.aborted) {
      const startedAt = clock.monotonic();
      await this.#contained(signal);
      if (signal.aborted) break;
      // The first round does not wait for a whole period once the pods are listed.
      const periodMs = this.#hasDone ? settings().syncPeriodMs : FIRST_LOOK_MS;
      const request = await this.#pacing.next(startedAt + periodMs, signal).catch(() => undefined);
      if (request) this.#startsOutOfTurn(request);
    }
    this.#isRunning = false;
    stopListening();
    plugins.close();
    this.#saveLastSteps();
  }

  /**
   * Requests a round out of turn, because a threshold was crossed. It starts at once, but at most one requested round
   * starts per second. Its rules are those of any other round.
   */
  requestRound(request: RoundRequest): void {
    if (this.#options.settings().outOfTurnRounds) this.#pacing.request(request);
  }

  #startsOutOfTurn({ plugin, reason }: RoundRequest): void {
    const { log, metrics } = this.#options;
    metrics.outOfTurnRounds.inc({ plugin });
    log.debug({ plugin, reason }, "round starts out of turn");
  }

  #saveLastSteps(): void {
    const { evictor, log } = this.#options;
    this.#outcomes.push(...evictor.takeOutcomes());
    const steps = [...this.#steps, ...evictor.takeSteps()];
    try {
      this.#saveState(steps);
    } catch (error) {
      log.warn(
        { errorId: "NK1105", err: error, steps: steps.length },
        "last steps of evictions can't be recorded",
      );
    }
  }

  /** Fails while rounds do not complete, are skipped, fail, or can't be recorded. */
  healthCheck(): HealthCheck {
    return { name: "EvictionRoundsReady", kind: "ready", check: () => this.#check() };
  }

  /** The state after the last round. */
  get state(): EvictionState {
    return this.#state;
  }

  /** The thresholds that were met in the last round. */
  get thresholds(): Decision["thresholds"] {
    return this.#thresholds;
  }

  /** The requests that the last round refused, at most 200 of each plugin. */
  get refusals(): Decision["refusals"] {
    return this.#refusals;
  }

  #restore(): void {
    const { records, evictor, clock, log, bootTime } = this.#options;
    let stored: EvictionState | undefined;
    try {
      stored = records.loadState();
    } catch (error) {
      log.error(
        { errorId: "NK1103", err: error },
        "eviction state can't be loaded, starting with an empty state",
      );
    }
    const [now, state] = [clock.now(), stored ?? emptyEvictionState()];
    const read = { ...state, pending: state.pending.map((one) => this.#perhapsSent(one)) };
    this.#state = { ...resumeState(read, now, elapsedSince(state, now, bootTime())), unrecorded: [] };
    this.#stateAt = clock.monotonic();
    this.#gate.start(stored);
    this.#outcomes = state.unrecorded;
    const ended = new Set(this.#outcomes.filter(isFinal).map(({ uid }) => uid));
    const interrupted = this.#state.interrupted.filter(({ uid }) => !ended.has(uid));
    const pending = this.#state.pending.filter(({ uid }) => !ended.has(uid));
    if (pending.length + interrupted.length === 0) return;
    log.info(
      { accepted: pending.length, notAccepted: interrupted.length },
      "evictions in progress before the restart: accepted ones are followed, the others are reviewed by the first round",
    );
    evictor.resume(pending);
  }

  // An eviction may have been sent although the record of it is missing, as after a full disk.
  #perhapsSent(eviction: PendingEviction): PendingEviction {
    const { sendingAt, since } = eviction;
    if (sendingAt !== null || !this.#options.records.hasLostWrites(since)) return eviction;
    return { ...eviction, sendingAt: since };
  }

  // Saved at once: before a request is sent, and so that an accepted eviction is not sent again after SIGKILL. If it can't be
  // saved, the eviction continues: a full disk may be its cause.
  #advanced(progress: EvictionProgress): void {
    const { log, metrics } = this.#options;
    this.#progress.push(progress);
    this.#state = this.#withProgress(this.#state, this.#stateAt);
    try {
      this.#saveState([]);
    } catch (error) {
      metrics.recordFailures.inc();
      const { uid, stage } = progress;
      log.warn({ errorId: "NK1105", err: error, uid, stage }, "progress of an eviction can't be recorded");
    }
  }

  #saveState(steps: readonly EvictionStep[]): void {
    this.#options.records.saveState({ ...this.#state, unrecorded: this.#outcomes }, steps);
  }

  /** @param monotonic the monotonic time that corresponds to the state's time `at` */
  #withProgress(state: EvictionState, monotonic: number): EvictionState {
    const by = (state.at ?? 0) - monotonic;
    const progress = this.#progress.map((step) => ({
      ...step,
      at: step.at + by,
      deadline: step.deadline === null ? null : step.deadline + by,
    }));
    return withProgress(state, progress);
  }

  async #contained(signal: AbortSignal): Promise<void> {
    const { log, metrics, clock } = this.#options;
    const startedAt = clock.monotonic();
    try {
      const skipped = await this.#round(signal);
      if (skipped === undefined) metrics.roundDuration.observe((clock.monotonic() - startedAt) / 1000);
      metrics.rounds.inc({ result: skipped === undefined ? "done" : "skipped" });
      if (skipped === undefined) this.#hasDone = true;
      else if (this.#trouble !== skipped && this.#hasDone)
        log.warn({ errorId: "NK1613", reason: skipped }, "round skipped");
      this.#trouble = skipped;
      this.#lastDone = clock.monotonic();
    } catch (error) {
      if (signal.aborted) return;
      this.#hasDone = true;
      metrics.rounds.inc({ result: "failed" });
      this.#trouble = `the last round failed: ${messageOf(error)}`;
      log.error({ errorId: "NK1613", err: error }, "round failed");
    }
  }

  /**
   * Returns the reason where the round is skipped. Pods, plugins, policy and settings of the whole round are those of its
   * start. Only what protects pods is read again when an eviction is sent: see `EvictionSender`.
   */
  async #round(signal: AbortSignal): Promise<string | undefined> {
    const { pods: nodePods, plugins, policy: currentPolicy, settings: currentSettings } = this.#options;
    const { nodeName, metrics } = this.#options;
    this.#options.onRoundStart?.();
    if (!nodePods.isSynced) return "the API server has not listed the pods of this node yet";

    const observed = nodePods.list();
    const pods = observed.map(({ pod }) => pod);
    const policy = structuredClone(currentPolicy());
    const settings = currentSettings();
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
    { syncPeriodMs }: EvictionSettings,
  ): RoundInput {
    const { evictor, clock, bootTime } = this.#options;
    const [now, monotonic, boot] = [clock.now(), clock.monotonic(), bootTime()];
    this.#outcomes.push(...evictor.takeOutcomes());
    this.#markGap(now, boot, syncPeriodMs);
    this.#state = { ...stateAt(this.#state, now, monotonic - this.#stateAt), boot: boot ?? null };
    this.#stateAt = monotonic;
    this.#progress = [];
    const { interrupted } = this.#state;
    for (const outcome of interruptedOutcomes(interrupted, observed.pods, this.#outcomes)) {
      evictor.reportInterrupted(interrupted.find(({ uid }) => uid === outcome.uid)!, outcome);
      this.#outcomes.push(outcome);
    }
    return { ...observed, now, outcomes: [...this.#outcomes], state: this.#state };
  }

  #markGap(now: number, boot: BootTime | undefined, periodMs: number): void {
    const { onMarks } = this.#options;
    const input = { at: now, boot: boot ?? null, periodMs };
    const gap = this.#lastInput && gapMark(this.#lastInput, input, this.#trouble);
    this.#lastInput = input;
    if (gap) onMarks([{ ...gap, at: now }]);
  }

  // Synchronous: nothing else runs between the decision and acting on it.
  #finish(input: DecideInput, prepared: PreparedRound): void {
    const { evictor, clock, onNodeEvent } = this.#options;
    this.#steps.push(...evictor.takeSteps());
    const decision = this.#timedNow("decide", () => decide(input, prepared));
    decision.state = this.#withProgress(decision.state, this.#stateAt);
    const id = this.#timedNow("record", () => this.#record(input, decision));
    const marks = this.#decisionLog.write(id, decision);
    const changes = conditionChanges(input.state.conditions, decision.state.conditions);
    marks.push(...this.#decisionLog.writeConditions(id, changes));
    for (const change of changes) onNodeEvent(conditionChangeText(change), change.condition.plugin);
    this.#state = decision.state;
    this.#thresholds = decision.thresholds;
    this.#refusals = decision.refusals;
    this.#outcomes = this.#outcomes.slice(input.outcomes.length);
    this.#count(decision);
    this.#options.plugins.endRound(decision.conditionProblems);
    this.#held.note(decision.thresholds, clock.now());
    this.#timedNow("act", () => this.#act(input, decision, id));
    this.#options.onMarks(marks.map((mark) => ({ ...mark, at: input.now })));
  }

  // A full disk must not stop evictions: it may be their cause. The round is written when there is space again; if the
  // agent is killed before, its decisions are in the log.
  #record(input: DecideInput, decision: Decision): number {
    const { records, log, metrics } = this.#options;
    let id = 0;
    try {
      id = records.nextId;
      records.save({ id, input, decision }, this.#steps);
      this.#steps = [];
      this.#recordError = undefined;
    } catch (error) {
      metrics.recordFailures.inc();
      // Bounds memory while the disk is full.
      this.#steps = this.#steps.slice(-MOST_WAITING_STEPS);
      if (this.#recordError === undefined)
        log.error({ errorId: "NK1105", err: error }, "round can't be recorded, evictions continue");
      this.#recordError = messageOf(error);
    }
    return id;
  }

  #act(input: DecideInput, decision: Decision, roundId: number): void {
    const { evictor, tainter, blocked } = this.#options;
    const started = decision.withdrawals.filter(({ stage }) => stage === "started");
    if (started.length > 0) evictor.withdraw(started);
    if (decision.resumed.length > 0) evictor.resume(decision.resumed);
    if (decision.victims.length > 0) evictor.start(decision.victims, roundId);
    const isComplete = this.#gate.isOpen(input);
    if (isFullDryRun(input.policy)) {
      tainter.suspend();
      // After dry run taints are removed as after a start.
      this.#gate.start(decision.state);
    } else tainter.setDesired(decision.taints, isComplete);
    const { thresholds } = decision;
    const { forbidden } = evictor;
    blocked.note({ thresholds, policy: input.policy, forbidden, isComplete, now: input.now });
    this.#notifier.notify(decision.notifications);
    this.#options.hostPathNotifier?.notify(decision.notifications);
  }

  #count({ victims, dryRunVictims, refusalCounts, conditionProblems, thresholds }: Decision): void {
    const { metrics } = this.#options;
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
    const { clock, settings } = this.#options;
    if (!this.#isRunning) return { ok: false, message: "eviction is not running", errorId: "NK1613" };
    const { syncPeriodMs } = settings();
    const silence = clock.monotonic() - this.#lastDone;
    // Three calls to a plugin, each at most one period, and the wait between rounds.
    if (silence > 5 * syncPeriodMs) {
      const message = `no round completed for ${Math.round(silence / 1000)} s`;
      return { ok: false, message, errorId: "NK1613" };
    }
    if (this.#trouble !== undefined) return { ok: false, message: this.#trouble, errorId: "NK1613" };
    if (this.#recordError !== undefined) {
      return { ok: false, message: `rounds can't be recorded: ${this.#recordError}`, errorId: "NK1105" };
    }
    return { ok: true, message: "rounds complete" };
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
    metrics.stepSeconds.inc({ step }, (clock.monotonic() - startedAt) / 1000);
  }
}

const FIRST_LOOK_MS = 50;
const MOST_WAITING_STEPS = 1_000;
