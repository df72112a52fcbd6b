import { isDeepStrictEqual } from "node:util";
import type {
  EvictionOutcome,
  EvictionPod,
  EvictionState,
  PluginAnswers,
  PodReference,
} from "@nodekeeper/api/decide";
import { StateDamaged } from "@nodekeeper/api/errors";
import {
  type EvictionStep,
  idleRound,
  isWorthKeeping,
  type RecordCoverage,
  type RoundRecord,
} from "@nodekeeper/api/records";
import type { EvictionSettings } from "@nodekeeper/api/settings";
import { type Clock, codeOf, type Logger, NodekeeperError, RecentMap } from "@nodekeeper/core/lib";
import {
  Backlog,
  type EvictionStore,
  type RecordBounds,
  type RoundSpan,
  type StoredRound,
} from "../../state/index.ts";
import { consequenceOf } from "./consequence.ts";
import {
  type PodBase,
  packBase,
  packRound,
  sharesEnough,
  unpackAnswers,
  unpackBase,
  unpackRound,
} from "./pack-record.ts";
import { readStoredState } from "./stored-state.ts";

export interface EvictionRecordsOptions {
  store: EvictionStore;
  settings: () => EvictionSettings["records"];
  clock: Clock;
  log: Logger;
}

/**
 * Eviction's part of the state database: its state, and the rounds worth recording. Rounds and steps that can't be
 * written, for example while the disk is full, are kept in memory, read from there, and written before the next round.
 */
export class EvictionRecords {
  readonly #options: EvictionRecordsOptions;
  #base: PodBase | undefined;
  #lastId: number | undefined;
  #savedState = "";
  /** Comparison key of the last round if it decided nothing: see `idleRound`. */
  #idle: string | undefined;
  readonly #waiting = waitingRounds();
  /** Steps that could not be written. The caller keeps them too. */
  #waitingSteps: readonly EvictionStep[] = [];
  /** The last outcomes that rounds recorded in a database that ends with the process, by UID. */
  readonly #unkept = new RecentMap<string, EvictionOutcome>(MOST_UNKEPT);
  /** Wall milliseconds of the first waiting round that was dropped; undefined if none was. */
  #droppedSince: number | undefined;

  constructor(options: EvictionRecordsOptions) {
    this.#options = options;
  }

  /** Returns the state of the last round; undefined if there is none or it can't be read. */
  loadState(): EvictionState | undefined {
    return this.loadLatest()?.state;
  }

  /** Like `loadState`. `isNewest`: the state is known to be the last one saved, even if the database lacks it. */
  loadLatest(): { state: EvictionState; isNewest: boolean } | undefined {
    for (const { text, isNewest } of this.#options.store.states()) {
      const state = this.#read(text);
      if (!state) continue;
      // The agent may have ended after it wrote a waiting round, and before it saved the state without its outcomes.
      return { state: { ...state, unrecorded: this.#unrecorded(state.unrecorded) }, isNewest };
    }
    return undefined;
  }

  // The last rounds suffice: after this save, at most the waiting rounds and the round itself were written.
  #unrecorded(outcomes: readonly EvictionOutcome[]): EvictionOutcome[] {
    const { store } = this.#options;
    const last = new Set(outcomes.length === 0 ? [] : store.lastRoundIds(MOST_WAITING + 1));
    const idsOf = ({ uid }: EvictionOutcome) =>
      store.roundIdsOfPod(uid, last.size).filter((id) => last.has(id));
    const ids = [...new Set(outcomes.flatMap(idsOf))].sort((a, b) => a - b);
    const recorded = [...this.#roundsWithIds(ids)].flatMap(({ input }) => input.outcomes);
    const byUid = Map.groupBy(recorded, ({ uid }) => uid);
    return outcomes.filter(
      (outcome) => !byUid.get(outcome.uid)?.some((other) => isDeepStrictEqual(other, outcome)),
    );
  }

  // Returns the state as JSON. Adds the outcomes of rounds that are lost when the process exits (waiting rounds, and
  // all rounds of an in-memory database) as unrecorded outcomes, except for pods that were selected again. Keeps only
  // the last outcome of each pod, which states how the pod ended. The selection of that outcome may be lost with the
  // rounds: the records may then contain only an earlier selection of the pod.
  #withUnkept(state: EvictionState): string {
    const underWay = new Set([...state.pending, ...state.interrupted].map(({ uid }) => uid));
    const waiting = this.#waiting.items.flatMap(({ input }) => input.outcomes);
    const unkept = [...this.#unkept.values(), ...waiting].filter(({ uid }) => !underWay.has(uid));
    const last = new Map([...unkept, ...state.unrecorded].map((outcome) => [outcome.uid, outcome]));
    return JSON.stringify({ ...state, unrecorded: [...last.values()] });
  }

  // Failures are not kept: their pauses are in the state, and recording them again would restart the pauses.
  #keepEnds(outcomes: readonly EvictionOutcome[]): void {
    for (const outcome of outcomes) {
      if (outcome.result === "failed") this.#unkept.delete(outcome.uid);
      else this.#unkept.set(outcome.uid, outcome);
    }
  }

  #textOf(state: EvictionState): string {
    return this.#options.store.isPersistent ? JSON.stringify(state) : this.#withUnkept(state);
  }

  /** Whether the last saved state survives an exit of the agent. */
  get isStateKept(): boolean {
    return this.#options.store.isStateKept;
  }

  #read(text: string): EvictionState | undefined {
    try {
      return readStoredState(text, this.#options.log);
    } catch (error) {
      this.#options.log.error(
        { errorId: StateDamaged.id, err: error },
        "stored eviction state can't be read, it is skipped",
      );
      return undefined;
    }
  }

  /** The ID of the next round. */
  get nextId(): number {
    this.#lastId ??= this.#options.store.lastRoundId();
    return this.#lastId + 1;
  }

  /**
   * Writes waiting rounds, then the round's state, the round if it is worth keeping, and steps. Throws if the database
   * can't be written: the round then waits, and the caller keeps the steps.
   */
  save(record: RoundRecord, steps: readonly EvictionStep[]): void {
    const { store } = this.#options;
    const { input, decision } = record;
    const { at: _at, boot: _boot, ...lasting } = decision.state;
    const comparable = JSON.stringify(lasting);
    const idle = idleRound(input, decision);
    const isRepeated = idle !== undefined && idle === this.#idle;
    const keep = isWorthKeeping(input, decision) && !isRepeated;
    this.#idle = idle;
    const isWaiting = this.#waiting.items.length > 0;
    if (!keep && !isWaiting && steps.length === 0 && comparable === this.#savedState) return;
    if (!store.isPersistent) this.#keepEnds(input.outcomes);
    const state = this.#textOf(decision.state);
    if (keep) this.#lastId = record.id;
    try {
      this.#saveWaiting();
      if (keep) this.#saveRound(record, { state, steps });
      else store.save({ state, steps }, this.#bounds());
    } catch (error) {
      this.#waitingSteps = steps;
      if (keep) this.#wait(record);
      store.saveForBoot(this.#withUnkept(decision.state));
      store.coverage.interrupted(input.now);
      throw error;
    }
    this.#waitingSteps = [];
    this.#savedState = comparable;
    store.coverage.complete();
  }

  /**
   * Stores a round of an exported file, also if it equals the one before: the rounds between them, of which nothing is
   * recorded, are not in the file. Throws as `save` does.
   */
  import(record: RoundRecord): void {
    this.#idle = undefined;
    this.save(record, []);
  }

  // Rounds dropped from memory are never written.
  #wait(record: RoundRecord): void {
    const { coverage } = this.#options.store;
    this.#waiting.add(record);
    for (const dropped of this.#waiting.bound()) {
      const at = dropped.input.now;
      if (consequenceOf(dropped).consequence === "effect") {
        this.#droppedSince ??= at;
        coverage.addGap({ from: this.#droppedSince, to: at, why: DROPPED });
      } else coverage.trimmed("requests", at);
    }
  }

  /**
   * Writes waiting rounds, a state that changed after its round, and steps. Throws if the database can't be written.
   */
  saveState(state: EvictionState, steps: readonly EvictionStep[]): void {
    const { store, clock } = this.#options;
    const text = this.#textOf(state);
    try {
      this.#saveWaiting();
      store.save({ state: text, steps }, this.#bounds());
    } catch (error) {
      store.saveForBoot(this.#withUnkept(state));
      store.coverage.interrupted(clock.now());
      throw error;
    }
    // Waiting steps are saved with the next round.
    if (this.#waitingSteps.length === 0) store.coverage.complete();
  }

  /**
   * Returns since when the rounds are complete, and their gaps. Waiting rounds are not gaps, because they are read from
   * memory.
   */
  coverage(): RecordCoverage {
    const { since, requests, gaps } = this.#options.store.coverage.get();
    return { oldest: since, requests, gaps };
  }

  /** Returns whether data written since a time (wall milliseconds) may be missing. */
  hasLostWrites(since: number): boolean {
    return this.#options.store.coverage.hasLostWrites(since);
  }

  #bounds(): RecordBounds {
    const { maxAge, maxSize } = this.#options.settings();
    return { maxAgeMs: maxAge, maxBytes: maxSize };
  }

  // With their states, so that no eviction whose outcome is recorded remains in the state.
  #saveWaiting(): void {
    this.#waiting.drain((record) => {
      const state = JSON.stringify(record.decision.state);
      this.#saveRound(record, { state, isReplaced: true, steps: [] });
    });
  }

  #saveRound(
    record: RoundRecord,
    written: { state: string; isReplaced?: true; steps: readonly EvictionStep[] },
  ): void {
    const { pods } = record.input;
    const shared = this.#sharedBase(pods);
    const basePods = shared?.pods ?? new Map(pods.map((pod) => [pod.uid, pod]));
    const round = {
      id: record.id,
      at: record.input.now,
      base: shared?.id ?? packBase(pods),
      body: packRound(record, basePods),
      pods: podsOf(record),
      ...consequenceOf(record),
    };
    // If the write fails, it is unknown whether the base was stored.
    this.#base = undefined;
    const id = this.#options.store.save({ ...written, round }, this.#bounds());
    if (id !== undefined) this.#base = { id, pods: basePods };
  }

  // The store deletes a base with the last round that refers to it.
  #sharedBase(pods: readonly EvictionPod[]): PodBase | undefined {
    const base = this.#base;
    return base && sharesEnough(base, pods) && this.#options.store.hasBase(base.id) ? base : undefined;
  }

  /**
   * Returns rounds since `since` (wall milliseconds) with an ID greater than `after`, oldest first. Unreadable ones are
   * logged and skipped.
   */
  *rounds(selection: { since?: number; after?: number; limit?: number } = {}): IterableIterator<RoundRecord> {
    const read = this.#reader();
    for (const stored of this.#options.store.rounds(selection)) {
      const record = read(stored);
      if (record) yield record;
    }
    yield* this.#waitingAfter(selection).slice(0, selection.limit);
  }

  #waitingAfter({ since = 0, after = 0 }: { since?: number; after?: number }): RoundRecord[] {
    return this.#waiting.items.filter(({ id, input }) => id > after && input.now >= since);
  }

  /** Like `rounds`, but with one query per round, so that the iteration sees rounds written or trimmed meanwhile. */
  *roundsOneByOne({ since, after }: { since: number; after: number }): IterableIterator<RoundRecord> {
    const read = this.#reader();
    for (let last = after; ; ) {
      const [stored] = this.#options.store.rounds({ since, after: last, limit: 1 });
      const [waiting] = stored ? [] : this.#waitingAfter({ since, after: last });
      const id = stored?.id ?? waiting?.id;
      if (id === undefined) return;
      last = id;
      const record = stored ? read(stored) : waiting;
      if (record) yield record;
    }
  }

  /**
   * Returns the latest 1,000 rounds that concern a pod, and the latest 1,000 of them with an effect, oldest first, and the
   * number of the others. Reads them one at a time, because together they may be large.
   */
  roundsOfPod(uid: string): { rounds: IterableIterator<RoundRecord>; others: number } {
    const { store } = this.#options;
    const ids = store.roundIdsOfPod(uid);
    return { rounds: this.#storedAndWaiting(uid, ids), others: store.roundCountOfPod(uid) - ids.length };
  }

  *#storedAndWaiting(uid: string, ids: readonly number[]): IterableIterator<RoundRecord> {
    yield* this.#roundsWithIds(ids);
    yield* this.#waiting.items.filter((record) => podsOf(record).some((pod) => pod.uid === uid));
  }

  *#roundsWithIds(ids: readonly number[]): IterableIterator<RoundRecord> {
    const read = this.#reader();
    for (const id of ids) {
      const stored = this.#options.store.round(id);
      const record = stored ? read(stored) : this.#waiting.items.find((one) => one.id === id);
      if (record) yield record;
    }
  }

  /**
   * Returns the plugins' answers in the rounds of a span, oldest first; undefined for an unreadable round, which is
   * logged.
   */
  *answersBetween(
    span: RoundSpan,
  ): IterableIterator<{ id: number; at: number; plugins: PluginAnswers[] | undefined }> {
    for (const { id, at, body } of this.#options.store.roundsBetween(span))
      yield { id, at, plugins: this.#unlessCorrupt(id, () => unpackAnswers(id, body)) };
  }

  /** Wall milliseconds of the oldest recorded round; undefined if there is none. */
  oldestAt(): number | undefined {
    return this.#options.store.oldestRoundAt() ?? this.#waiting.items[0]?.input.now;
  }

  /** Returns the last rounds, newest first. */
  *lastRounds(count: number): IterableIterator<RoundRecord> {
    const newest = this.nextId - 1;
    yield* this.#roundsWithIds(Array.from({ length: count }, (_, back) => newest - back));
  }

  steps(uid: string): EvictionStep[] {
    return [...this.#options.store.steps(uid), ...this.#waitingSteps.filter((step) => step.uid === uid)];
  }

  /** Returns the recorded pods with this UID or "namespace/name", newest first. */
  findPods(uidOrName: string): PodReference[] {
    const [namespace = "", name] = uidOrName.split("/");
    const isIt = (pod: PodReference) =>
      name === undefined ? pod.uid === uidOrName : pod.namespace === namespace && pod.name === name;
    const waiting = this.#waiting.items.flatMap(podsOf).filter(isIt).reverse();
    const { store } = this.#options;
    const stored = name === undefined ? [store.podOfUid(uidOrName)] : store.podsNamed(namespace, name);
    const pods = [...waiting, ...stored].filter((pod) => pod !== undefined);
    return [...new Map(pods.map(({ uid, ...rest }) => [uid, { uid, ...rest }])).values()];
  }

  // Rounds with the same base are adjacent, so only the last base is kept.
  #reader(): (stored: StoredRound) => RoundRecord | undefined {
    let last: { id: number; pods: readonly EvictionPod[] } | undefined;
    return ({ id, base, body }) =>
      this.#unlessCorrupt(id, () => {
        if (last?.id !== base) last = { id: base, pods: this.#readBase(base) };
        return unpackRound(id, body, last.pods);
      });
  }

  #unlessCorrupt<T>(id: number, read: () => T): T | undefined {
    try {
      return read();
    } catch (error) {
      if (codeOf(error) !== "corrupt") throw error;
      this.#options.log.error(
        { errorId: StateDamaged.id, err: error, round: id },
        "recorded round can't be read, it is skipped",
      );
      return undefined;
    }
  }

  #readBase(id: number): EvictionPod[] {
    const bytes = this.#options.store.base(id);
    if (bytes === undefined) throw new NodekeeperError("corrupt", `the recorded pods ${id} are missing`);
    return unpackBase(bytes);
  }
}

// Rounds share unchanged pods: a round with a thousand pods takes about 100 kB.
const MOST_WAITING = 64;
// Each save of the state writes them.
const MOST_UNKEPT = 256;
const ranks = ["none", "refusal", "effect"] as const;

/**
 * Returns the backlog of rounds that could not be written yet. Above 64, rounds without a consequence are dropped
 * first, then refusals, then rounds with an effect.
 */
export function waitingRounds(): Backlog<RoundRecord> {
  return new Backlog(MOST_WAITING, (record) => {
    const { consequence, plugins } = consequenceOf(record);
    return { rank: ranks.indexOf(consequence), groups: plugins };
  });
}

const DROPPED = "the state directory could not be written, and more rounds than fit in memory waited";

// Returns the pods under which a round is found: victims, requested and ineligible pods, and those whose eviction
// ended.
function podsOf({ input, decision }: RoundRecord): PodReference[] {
  const { victims, dryRunVictims, withdrawals, ranking, exclusions, refusals } = decision;
  // A deleted pod is known only from its eviction.
  const all = [...input.state.pending, ...ranking, ...exclusions];
  const known = new Map<string, PodReference>(all.map((pod) => [pod.uid, pod]));
  const ended = input.outcomes.flatMap(({ uid, namespace, name }) =>
    namespace !== undefined && name !== undefined ? { uid, namespace, name } : (known.get(uid) ?? []),
  );
  const refused = refusals.flatMap(({ uid }) => known.get(uid) ?? []);
  const ineligible = ranking.filter(({ outcome }) => outcome === "ineligible");
  const concerned = [...victims, ...dryRunVictims, ...withdrawals, ...ended, ...refused, ...ineligible];
  return [...new Map(concerned.map((pod) => [pod.uid, pod])).values()];
}
