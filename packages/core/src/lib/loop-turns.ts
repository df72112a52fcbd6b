import type { Clock } from "./clock.ts";

// Short enough not to delay a health probe or another call. The count limits the pieces that are admitted before the
// first one runs, for example if one event has many subscribers.
const LONGEST_TURN_MS = 10;
const MOST_IN_TURN = 32;

/**
 * Spreads work for many clients over turns of the event loop. Each piece of work first calls `pass`, which waits for a
 * later turn if the current one has used its time. First come, first served.
 */
export class LoopTurns {
  readonly #clock: Clock;
  readonly #waiting: (() => void)[] = [];
  #startedAt: number | undefined;
  #admitted = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Resolves when the piece of work may run. */
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
