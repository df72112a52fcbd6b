import {
  compareOutcomes,
  type EvictionState,
  endOf,
  isFinal,
  isOfSelection,
  type Victim,
} from "@nodekeeper/api/decide";
import type { ApiAnswers } from "@nodekeeper/api/openapi";
import type { RoundRecord } from "@nodekeeper/api/records";

/** A page of the victims of rounds, oldest first. Continue after the round with the ID `next`. */
export type EvictionPage = Omit<ApiAnswers["eviction/evictions"], "coverage">;
type RecordedEviction = EvictionPage["items"][number];

const MOST_ROUNDS = 1_000;
const MOST_EVICTIONS = 1_000;

/**
 * Collects the victims of rounds, and how their evictions ended. Add the rounds in their order. When the page is full,
 * later rounds only end the evictions that are listed: no other page does.
 */
export class EvictionList {
  readonly #items: RecordedEviction[] = [];
  /** Evictions without a final outcome, by UID. */
  readonly #open = new Map<string, RecordedEviction>();
  #rounds = 0;
  #next: number | undefined;

  /**
   * Adds a round. Returns whether the page is complete: full, and each of its evictions has ended, or 2,000 rounds
   * were read.
   */
  add({ id, input, decision }: RoundRecord): boolean {
    for (const outcome of [...input.outcomes].sort(compareOutcomes)) {
      const eviction = this.#open.get(outcome.uid);
      // The outcome may belong to a selection that is not recorded: `endUnrecorded` then ends earlier ones.
      if (eviction === undefined || !isOfSelection(outcome, eviction.at)) continue;
      eviction.outcome = { at: input.now, ...endOf(outcome) };
      if (isFinal(outcome)) this.#open.delete(outcome.uid);
    }
    this.endUnrecorded(input.state, input.now);
    this.#rounds++;
    if (this.#next === undefined) this.#list({ id, input, decision });
    return this.#next !== undefined && (this.#open.size === 0 || this.#rounds >= 2 * MOST_ROUNDS);
  }

  #list({ id, input, decision }: RoundRecord): void {
    const place = { at: input.now, round: id };
    for (const victim of decision.victims) {
      const eviction = { ...evictionOf(victim), ...place, dryRun: false };
      this.#open.set(victim.uid, eviction);
      this.#items.push(eviction);
    }
    for (const victim of decision.dryRunVictims)
      this.#items.push({ ...evictionOf(victim), ...place, dryRun: true });
    if (this.#rounds >= MOST_ROUNDS || this.#items.length >= MOST_EVICTIONS) this.#next = id;
  }

  /**
   * Ends evictions that a later state no longer has: the round with their outcome was not recorded, for example because
   * the disk was full.
   * @param at time of that state, which follows the rounds that were added
   */
  endUnrecorded({ pending, interrupted }: Pick<EvictionState, "pending" | "interrupted">, at: number): void {
    const inProgress = new Map([...pending, ...interrupted].map((one) => [one.uid, one]));
    for (const [uid, eviction] of this.#open) {
      const found = inProgress.get(uid);
      if (found && isOfSelection(found, eviction.at)) continue;
      eviction.outcome ??= { at, result: "unknown", message: "its outcome was not recorded" };
      this.#open.delete(uid);
    }
  }

  page(): EvictionPage {
    return { items: this.#items, ...(this.#next === undefined ? {} : { next: this.#next }) };
  }
}

function evictionOf({ uid, namespace, name, plugin, scope, kind, reason }: Victim) {
  return { uid, namespace, name, plugin, scope, kind, reason, outcome: null };
}
