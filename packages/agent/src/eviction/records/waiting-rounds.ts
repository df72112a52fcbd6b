import type { RoundRecord } from "./round-record.ts";

// Rounds share the pods that did not change: one of a thousand pods takes about 100 kB.
const MOST_WAITING = 64;

/**
 * Rounds that could not be written yet, oldest first. At most 64: beyond that rounds in which something was decided
 * or ended stay, and of the others the oldest is dropped first.
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

  /** Gives each to `write`, the oldest first; one for which it throws stays, with those after it. Throws the same. */
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
