import type { RoundRecord } from "../replay/round-record.ts";

// Rounds share unchanged pods: a round of a thousand pods takes about 100 kB.
const MOST_WAITING = 64;

/**
 * Rounds that could not be written yet, oldest first: at most 64. Beyond that the oldest round without a decision or an
 * outcome is dropped, else the oldest one.
 */
export class WaitingRounds {
  readonly #rounds: RoundRecord[] = [];

  get length(): number {
    return this.#rounds.length;
  }

  add(record: RoundRecord): void {
    this.#rounds.push(record);
    if (this.#rounds.length <= MOST_WAITING) return;
    const least = this.#rounds.findIndex((one) => !isOfConsequence(one));
    this.#rounds.splice(Math.max(least, 0), 1);
  }

  /** Passes each round to `write`, oldest first, and removes it. If `write` throws, that round and later ones stay. */
  drain(write: (record: RoundRecord) => void): void {
    for (let [first] = this.#rounds; first; [first] = this.#rounds) {
      write(first);
      this.#rounds.shift();
    }
  }
}

function isOfConsequence({ input, decision }: RoundRecord): boolean {
  const { victims, dryRunVictims, withdrawals } = decision;
  return [victims, dryRunVictims, withdrawals, input.outcomes].some((list) => list.length > 0);
}
