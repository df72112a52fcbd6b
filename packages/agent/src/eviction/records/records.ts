import { type Clock, codeOf, type Logger, NodekeeperError } from "@nodekeeper/core/lib";
import type { EvictionStore, RecordBounds, StoredRound } from "../../state/index.ts";
import type { EvictionPod, PodReference } from "../decide/pods.ts";
import type { EvictionState } from "../decide/state.ts";
import type { EvictionStep } from "../parts.ts";
import type { EvictionSettings } from "../round-settings.ts";
import { type PodBase, packBase, packRound, sharesEnough, unpackBase, unpackRound } from "./pack-record.ts";
import { idleRound, isWorthKeeping, type RoundRecord } from "./round-record.ts";
import { readStoredState } from "./stored-state.ts";
import { WaitingRounds } from "./waiting-rounds.ts";

export interface EvictionRecordsOptions {
  store: EvictionStore;
  settings: () => EvictionSettings["records"];
  clock: Clock;
  log: Logger;
}

/**
 * What eviction keeps in the state database: its state, and the rounds in which something happened. Rounds that can't
 * be written, as while the disk is full, wait in memory and are written before the next one that can.
 */
export class EvictionRecords {
  readonly #options: EvictionRecordsOptions;
  #base: PodBase | undefined;
  #lastId: number | undefined;
  #savedState = "";
  /** What the last round said, where nothing was decided in it. */
  #idle: string | undefined;
  readonly #waiting = new WaitingRounds();

  constructor(options: EvictionRecordsOptions) {
    this.#options = options;
  }

  /** The state of the last round; undefined where there is none, or it can't be read. */
  loadState(): EvictionState | undefined {
    const text = this.#options.store.state();
    if (text === undefined) return undefined;
    try {
      return readStoredState(text, this.#options.log);
    } catch (error) {
      this.#options.log.error(
        { err: error },
        "the stored state of eviction can't be read, starting from nothing",
      );
      return undefined;
    }
  }

  /** The id the next round would have. */
  get nextId(): number {
    this.#lastId ??= this.#options.store.lastRoundId();
    return this.#lastId + 1;
  }

  /**
   * Writes a round's state, the round where it is worth keeping, and steps; before it the rounds that wait. Throws when
   * the disk is full: then the round waits, and the steps are the caller's to keep.
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
    const isWaiting = this.#waiting.length > 0;
    if (!keep && !isWaiting && steps.length === 0 && comparable === this.#savedState) return;
    const bounds = this.#bounds();
    if (keep) this.#lastId = record.id;
    try {
      this.#saveWaiting();
      if (keep) this.#saveRound(record, steps, bounds);
      else store.save({ state: JSON.stringify(decision.state), steps }, bounds);
    } catch (error) {
      if (keep) this.#waiting.add(record);
      throw error;
    }
    this.#savedState = comparable;
  }

  /** Writes the rounds that wait, the state, which changed after its round, and steps. Throws when the disk is full. */
  saveState(state: EvictionState, steps: readonly EvictionStep[]): void {
    this.#saveWaiting();
    const { store } = this.#options;
    store.save({ state: JSON.stringify(state), steps }, this.#bounds());
  }

  #bounds(): RecordBounds {
    const { settings, clock } = this.#options;
    const { maxAgeMs, maxBytes } = settings();
    return { notBefore: clock.now() - maxAgeMs, maxBytes };
  }

  #saveWaiting(): void {
    this.#waiting.drain((record) => this.#saveRound(record, [], this.#bounds()));
  }

  #saveRound(record: RoundRecord, steps: readonly EvictionStep[], bounds: RecordBounds): void {
    const state = JSON.stringify(record.decision.state);
    const { pods } = record.input;
    const shared = this.#sharedBase(pods);
    const basePods = shared?.pods ?? new Map(pods.map((pod) => [pod.uid, pod]));
    const round = {
      id: record.id,
      at: record.input.now,
      base: shared?.id ?? packBase(pods),
      body: packRound(record, basePods),
      pods: podsOf(record),
    };
    // Where writing fails, whether the base is there is not known.
    this.#base = undefined;
    const id = this.#options.store.save({ state, round, steps }, bounds);
    if (id !== undefined) this.#base = { id, pods: basePods };
  }

  // A base goes with the last round that refers to it.
  #sharedBase(pods: readonly EvictionPod[]): PodBase | undefined {
    const base = this.#base;
    return base && sharesEnough(base, pods) && this.#options.store.hasBase(base.id) ? base : undefined;
  }

  /** Rounds from `since` on (wall milliseconds) with an id greater than `after`, oldest first. Unreadable ones are told and left out. */
  *rounds(selection: { since?: number; after?: number; limit?: number } = {}): IterableIterator<RoundRecord> {
    const read = this.#reader();
    for (const stored of this.#options.store.rounds(selection)) {
      const record = read(stored);
      if (record) yield record;
    }
  }

  /** The same, each read when it is asked for, however long that takes: what is written and trimmed meanwhile counts. */
  *roundsOneByOne({ since, after }: { since: number; after: number }): IterableIterator<RoundRecord> {
    const read = this.#reader();
    for (let last = after; ; ) {
      const [stored] = this.#options.store.rounds({ since, after: last, limit: 1 });
      if (!stored) return;
      last = stored.id;
      const record = read(stored);
      if (record) yield record;
    }
  }

  /** The rounds that were about a pod, oldest first, each read when it is asked for: together they may be large. */
  *roundsOfPod(uid: string): IterableIterator<RoundRecord> {
    yield* this.#roundsWithIds(this.#options.store.roundIdsOfPod(uid));
  }

  *#roundsWithIds(ids: readonly number[]): IterableIterator<RoundRecord> {
    const read = this.#reader();
    for (const id of ids) {
      const stored = this.#options.store.round(id);
      const record = stored && read(stored);
      if (record) yield record;
    }
  }

  /** When the oldest recorded round was, wall milliseconds; undefined where there is none. */
  oldestAt(): number | undefined {
    return this.#options.store.oldestRoundAt();
  }

  /** The last few rounds, newest first, whomever they were about. */
  *lastRounds(count: number): IterableIterator<RoundRecord> {
    const newest = this.nextId - 1;
    yield* this.#roundsWithIds(Array.from({ length: count }, (_, back) => newest - back));
  }

  steps(uid: string): EvictionStep[] {
    return this.#options.store.steps(uid);
  }

  /** The recorded pods of a UID or "namespace/name", the newest first. */
  findPods(uidOrName: string): PodReference[] {
    const [namespace = "", name] = uidOrName.split("/");
    if (name !== undefined) return this.#options.store.podsNamed(namespace, name);
    const pod = this.#options.store.podOfUid(uidOrName);
    return pod ? [pod] : [];
  }

  // Rounds of one base follow each other, so one base at a time is at hand.
  #reader(): (stored: StoredRound) => RoundRecord | undefined {
    let last: { id: number; pods: readonly EvictionPod[] } | undefined;
    return ({ id, base, body }) => {
      try {
        if (last?.id !== base) last = { id: base, pods: this.#readBase(base) };
        return unpackRound(id, body, last.pods);
      } catch (error) {
        if (codeOf(error) !== "corrupt") throw error;
        this.#options.log.error({ err: error, round: id }, "recorded round can't be read, it is left out");
        return undefined;
      }
    };
  }

  #readBase(id: number): EvictionPod[] {
    const bytes = this.#options.store.base(id);
    if (bytes === undefined) throw new NodekeeperError("corrupt", `the pods ${id} are missing`);
    return unpackBase(bytes);
  }
}

// Whom a page about a pod should be found by: whoever goes or was asked for.
function podsOf({ input, decision }: RoundRecord): PodReference[] {
  const { victims, dryRunVictims, withdrawals, ranking, exclusions, refusals } = decision;
  // One that is gone is known from its eviction alone.
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
