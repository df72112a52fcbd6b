import {
  type DecideInput,
  type Decision,
  type EvictionOutcome,
  type EvictionPod,
  type EvictionProgress,
  type EvictionState,
  emptyEvictionState,
  interruptedOutcomes,
  isFinal,
  type PendingEviction,
  resumeState,
  stateAt,
  withProgress,
} from "@nodekeeper/api/decide";
import { StateDamaged, StateNotWritable } from "@nodekeeper/api/errors";
import type { EvictionStep } from "@nodekeeper/api/records";
import { type BootTime, type Clock, elapsedSince, type Logger } from "@nodekeeper/core/lib";
import { WriteBehind } from "../state/index.ts";
import type { EvictionMetrics } from "./metrics.ts";
import { readingsOf } from "./readings.ts";
import type { EvictionRecords } from "./records/records.ts";
import type { SignalHistory } from "./signal-history.ts";

export interface EvictionLedgerOptions {
  records: EvictionRecords;
  /** Receives the readings of each recorded round. */
  signals: Pick<SignalHistory, "add" | "close">;
  /** Boot ID and uptime of the machine, to determine how long the agent was not running. */
  bootTime: () => BootTime | undefined;
  clock: Clock;
  log: Logger;
  metrics: Pick<EvictionMetrics, "recordFailures">;
}

/** The entries that the ledger provides to a round before its decision. */
export interface LedgerEntries {
  /** Wall milliseconds. */
  now: number;
  state: EvictionState;
  /** Outcomes that no round has recorded yet. */
  outcomes: EvictionOutcome[];
  /** Evictions that a restart of the agent interrupted, with their outcomes. `outcomes` includes them. */
  interrupted: readonly { eviction: PendingEviction; outcome: EvictionOutcome }[];
}

// Bounds memory while the database can't be written.
const MOST_WAITING_STEPS = 1_000;

/**
 * The state of evictions, and their progress, outcomes and steps since the last round. The evictor adds these; a round
 * reads them and replaces the state with that of its decision.
 *
 * 1. A decision is written to the state database before the agent acts on it. Each request is recorded before it is
 *    sent; its acceptance and the end of the eviction are recorded as soon as they are known. After SIGKILL at any
 *    point, an eviction whose acceptance is recorded is never sent again; any other is decided again.
 * 2. An eviction is removed from the state in the transaction that records its final outcome. While the disk is full,
 *    the outcome is kept in the copy of the state for this boot: see `EvictionStore`.
 * 3. Durations are measured with the monotonic clock. If the wall clock is stepped, the times in the state move by the
 *    same amount.
 */
export class EvictionLedger {
  readonly #options: EvictionLedgerOptions;
  #state: EvictionState = emptyEvictionState();
  /** The monotonic time that corresponds to the state's time `at`. */
  #stateAt = 0;
  /** Progress of evictions since the round was prepared; monotonic times. */
  #progress: EvictionProgress[] = [];
  #outcomes: EvictionOutcome[] = [];
  #steps: EvictionStep[] = [];
  readonly #writes: WriteBehind;

  constructor(options: EvictionLedgerOptions) {
    this.#options = options;
    const { log, metrics } = options;
    this.#writes = new WriteBehind({
      what: "the records of eviction",
      write: () => this.#saveState([]),
      onFailure: () => metrics.recordFailures.inc(),
      log,
    });
  }

  /** The state after the last round. */
  get state(): EvictionState {
    return this.#state;
  }

  /** Why the last write failed; undefined if it succeeded. */
  get recordError(): string | undefined {
    return this.#writes.lastError;
  }

  /**
   * Loads the stored state. Returns it (undefined if there is none), the accepted evictions, which the caller must
   * follow, and those that have ended and that no round has recorded.
   */
  restore(): {
    stored: EvictionState | undefined;
    accepted: readonly PendingEviction[];
    ended: readonly EvictionOutcome[];
  } {
    const { records, clock, log, bootTime } = this.#options;
    let loaded: ReturnType<EvictionRecords["loadLatest"]>;
    try {
      loaded = records.loadLatest();
    } catch (error) {
      log.error(
        { errorId: StateDamaged.id, err: error },
        "eviction state can't be loaded, starting with an empty state",
      );
    }
    const [now, state] = [clock.now(), loaded?.state ?? emptyEvictionState()];
    const overdue = new Set(state.unrecorded.filter((one) => !isFinal(one)).map(({ uid }) => uid));
    const pendingOf = (one: PendingEviction): PendingEviction => ({
      ...(loaded?.isNewest ? one : this.#perhapsSent(one)),
      ...(overdue.has(one.uid) && { isOverdue: true }),
    });
    const read = { ...state, pending: state.pending.map(pendingOf) };
    const boot = bootTime();
    const resumed = resumeState(read, now, elapsedSince(state, now, boot));
    // `boot` and `at` must be of the same moment, because the state may be saved before any round runs.
    this.#state = { ...resumed, boot: boot ?? null, unrecorded: [] };
    this.#stateAt = clock.monotonic();
    this.#outcomes.unshift(...state.unrecorded);
    const ended = new Set(this.#outcomes.filter(isFinal).map(({ uid }) => uid));
    const notEnded = ({ uid }: PendingEviction) => !ended.has(uid);
    const [accepted, others] = [
      this.#state.pending.filter(notEnded),
      this.#state.interrupted.filter(notEnded),
    ];
    if (accepted.length + others.length > 0)
      log.info(
        { accepted: accepted.length, notAccepted: others.length },
        "evictions in progress before the restart: accepted ones are followed, the others are reviewed by the first round",
      );
    return { stored: loaded?.state, accepted, ended: state.unrecorded.filter(isFinal) };
  }

  // The request may have been sent although its record is missing, for example because the disk was full.
  #perhapsSent(eviction: PendingEviction): PendingEviction {
    const { sendingAt, since } = eviction;
    if (sendingAt !== null || !this.#options.records.hasLostWrites(since)) return eviction;
    return { ...eviction, sendingAt: since };
  }

  /**
   * Adds progress of an eviction (monotonic times) and saves it. A failed write to the database does not stop the
   * eviction, because a full disk may be its cause, as long as the state is kept for this boot. Returns whether the
   * progress survives an exit of the agent; if not, no request may be sent.
   */
  progress(progress: EvictionProgress): boolean {
    const before = this.#state;
    this.#progress.push(progress);
    this.#state = this.withProgress(before);
    const { log, records } = this.#options;
    if (!this.#writes.flush()) {
      const { uid, stage } = progress;
      log.warn({ errorId: StateNotWritable.id, uid, stage }, "progress of an eviction can't be recorded");
    }
    if (records.isStateKept) return true;
    // The request is not sent, so that no later write may record it.
    if (progress.stage === "sending") {
      this.#progress.pop();
      this.#state = before;
    }
    return false;
  }

  /** Adds the outcome of the pod's eviction that is in progress, and saves it. The next round records it. */
  outcome(outcome: Omit<EvictionOutcome, "selectedAt">): void {
    const { pending, interrupted } = this.#state;
    const { selectedAt } = [...pending, ...interrupted].find(({ uid }) => uid === outcome.uid) ?? {};
    this.#outcomes.push(selectedAt === undefined ? outcome : { ...outcome, selectedAt });
    if (this.#writes.flush()) return;
    const { uid } = outcome;
    this.#options.log.warn({ errorId: StateNotWritable.id, uid }, "the end of an eviction can't be recorded");
  }

  /** Adds a step of an eviction at the current time. The next round records it. */
  step(uid: string, message: string): void {
    this.#steps.push({ uid, at: this.#options.clock.now(), message });
  }

  /**
   * Prepares a round: moves the state to the current time, and returns it with the outcomes since the last round.
   * @param pods the pods that the round observed
   */
  prepare(pods: readonly EvictionPod[]): LedgerEntries {
    const { clock, bootTime } = this.#options;
    const [now, monotonic] = [clock.now(), clock.monotonic()];
    this.#state = {
      ...stateAt(this.#state, now, monotonic - this.#stateAt),
      boot: bootTime() ?? null,
    };
    this.#stateAt = monotonic;
    this.#progress = [];
    const { interrupted } = this.#state;
    const ends = interruptedOutcomes(interrupted, pods, this.#outcomes);
    this.#outcomes.push(...ends);
    return {
      now,
      state: this.#state,
      outcomes: [...this.#outcomes],
      interrupted: ends.map((outcome) => ({
        eviction: interrupted.find(({ uid }) => uid === outcome.uid)!,
        outcome,
      })),
    };
  }

  /** Returns a state with the progress of its evictions since the round was prepared. */
  withProgress(state: EvictionState): EvictionState {
    const by = (state.at ?? 0) - this.#stateAt;
    const progress = this.#progress.map((step) => ({
      ...step,
      at: step.at + by,
      deadline: step.deadline === null ? null : step.deadline + by,
    }));
    return withProgress(state, progress);
  }

  /**
   * Records a round, and replaces the state with that of its decision. A full disk must not stop evictions, because it
   * may be their cause: the round is written once there is space. If the agent is killed before that, its decisions are
   * only in the log. Returns the round's ID.
   */
  record(input: DecideInput, decision: Decision): number {
    const { records, signals } = this.#options;
    let id = 0;
    const isWritten = this.#writes.attempt(() => {
      id = records.nextId;
      records.save({ id, input, decision }, this.#steps);
    });
    this.#steps = isWritten ? [] : this.#steps.slice(-MOST_WAITING_STEPS);
    this.#state = decision.state;
    this.#outcomes = this.#outcomes.slice(input.outcomes.length);
    signals.add(input.now, readingsOf(input.plugins));
    return id;
  }

  /**
   * Saves the outcomes and steps that no round has recorded, and the history of signals. Call after the evictor has
   * stopped.
   */
  close(): void {
    this.#options.signals.close();
    if (this.#writes.attempt(() => this.#saveState(this.#steps))) return;
    const fields = { errorId: StateNotWritable.id, steps: this.#steps.length };
    this.#options.log.warn(fields, "last steps of evictions can't be recorded");
  }

  #saveState(steps: readonly EvictionStep[]): void {
    this.#options.records.saveState({ ...this.#state, unrecorded: this.#outcomes }, steps);
  }
}
