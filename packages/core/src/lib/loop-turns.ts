import type { Clock } from "./clock.ts";

// Short enough that a health probe or another call does not notice it. The count bounds pieces that are let through
// before the first of them has run, as those of many subscribers of one event are.
const LONGEST_TURN_MS = 10;
const MOST_IN_TURN = 32;

/**
 * Spreads work that is done for many at once over turns of the event loop: each piece of it calls `pass` first, and
 * waits for a later turn when this one has had enough. First come, first served.
 */
export class LoopTurns {
  readonly #clock: Clock;
  readonly #waiting: (() => void)[] = [];
  #startedAt: number | undefined;
  #admitted = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Resolves when the piece may be done. */
  async pass(): Promise<void> {
    if (this.#waiting.length === 0 && this.#admit()) return;
    await new Promise<void>((resolve) => this.#waiting.push(resolve));
  }

  #admit(): boolean {
    const now = this.#clock.monotonic();
    if (this.#startedAt === undefined) {
      this.#startedAt = now;
      setImmediate(() => this.#nextTurn());
    }
    if (this.#admitted >= MOST_IN_TURN || now - this.#startedAt >= LONGEST_TURN_MS) return false;
    this.#admitted++;
    return true;
  }

  #nextTurn(): void {
    this.#startedAt = undefined;
    this.#admitted = 0;
    while (this.#waiting.length > 0 && this.#admit()) this.#waiting.shift()?.();
  }
}
