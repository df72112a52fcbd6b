import type { Victim } from "../decide/decision.ts";
import { compareOutcomes, type EvictionOutcome, isFinal } from "../decide/outcome.ts";
import type { PodReference } from "../decide/pods.ts";
import type { RoundRecord } from "../replay/round-record.ts";

/** A victim of a round, and how its eviction ended. Plain JSON. */
export interface RecordedEviction extends PodReference, Pick<Victim, "plugin" | "scope" | "kind" | "reason"> {
  /** Wall milliseconds of the round that decided it. */
  at: number;
  round: number;
  /** Whether it was only recorded, because the plugin is in dry run. */
  dryRun: boolean;
  /** Null while it is not known, and where it is in a later page. */
  outcome: (Pick<EvictionOutcome, "result" | "message"> & { at: number }) | null;
}

/** A page of evictions, oldest first. */
export interface EvictionPage {
  items: RecordedEviction[];
  /** The id of the round after which to continue; absent at the end. */
  next?: number;
}

const MOST_ROUNDS = 1_000;
const MOST_EVICTIONS = 1_000;

/** Collects the victims of rounds, which are added in their order. */
export class EvictionList {
  readonly #items: RecordedEviction[] = [];
  /** Evictions without an outcome, by UID. */
  readonly #open = new Map<string, RecordedEviction>();
  #rounds = 0;
  #next: number | undefined;

  /** Adds a round. Returns whether the page is full. */
  add({ id, input, decision }: RoundRecord): boolean {
    for (const outcome of [...input.outcomes].sort(compareOutcomes)) {
      const { uid, result, message } = outcome;
      const eviction = this.#open.get(uid);
      if (eviction) eviction.outcome = { at: input.now, result, message };
      if (isFinal(outcome)) this.#open.delete(uid);
    }
    const place = { at: input.now, round: id };
    for (const victim of decision.victims) {
      const eviction = { ...evictionOf(victim), ...place, dryRun: false };
      this.#open.set(victim.uid, eviction);
      this.#items.push(eviction);
    }
    for (const victim of decision.dryRunVictims)
      this.#items.push({ ...evictionOf(victim), ...place, dryRun: true });
    this.#rounds++;
    const isFull = this.#rounds >= MOST_ROUNDS || this.#items.length >= MOST_EVICTIONS;
    this.#next = isFull ? id : undefined;
    return isFull;
  }

  page(): EvictionPage {
    return { items: this.#items, ...(this.#next === undefined ? {} : { next: this.#next }) };
  }
}

function evictionOf({ uid, namespace, name, plugin, scope, kind, reason }: Victim) {
  return { uid, namespace, name, plugin, scope, kind, reason, outcome: null };
}
