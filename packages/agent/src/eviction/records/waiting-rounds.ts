import type { RoundRecord } from "../replay/round-record.ts";
import { consequenceOf } from "./consequence.ts";

// Rounds share unchanged pods: a round of a thousand pods takes about 100 kB.
const MOST_WAITING = 64;
const order = ["none", "refusal", "effect"] as const;

/**
 * Rounds that could not be written yet, oldest first: at most 64. Beyond that one is dropped: of those without a consequence
 * first, then of refusals, then of those with an effect; of the plugin that has most of them the oldest one.
 */
export class WaitingRounds {
  readonly #rounds: RoundRecord[] = [];

  get length(): number {
    return this.#rounds.length;
  }

  /** Returns the round that is dropped for it, if one is. */
  add(record: RoundRecord): RoundRecord | undefined {
    this.#rounds.push(record);
    if (this.#rounds.length <= MOST_WAITING) return undefined;
    const [dropped] = this.#rounds.splice(this.#least(), 1);
    return dropped;
  }

  /** Passes each round to `write`, oldest first, and removes it. If `write` throws, that round and later ones stay. */
  drain(write: (record: RoundRecord) => void): void {
    for (let [first] = this.#rounds; first; [first] = this.#rounds) {
      write(first);
      this.#rounds.shift();
    }
  }

  /** The rounds, oldest first. */
  list(): readonly RoundRecord[] {
    return this.#rounds;
  }

  #least(): number {
    const rounds = this.#rounds.map((round, at) => ({ at, ...consequenceOf(round) }));
    const kind = order.find((one) => rounds.some(({ consequence }) => consequence === one));
    const least = rounds.filter(({ consequence }) => consequence === kind);
    const counts = new Map<string, number>();
    for (const { plugins } of least)
      for (const plugin of plugins) counts.set(plugin, (counts.get(plugin) ?? 0) + 1);
    const most = Math.max(...counts.values());
    return (least.find(({ plugins }) => plugins.some((plugin) => counts.get(plugin) === most)) ?? least[0])!
      .at;
  }
}
