import { type Clock, type Pace, systemClock } from "../lib/index.ts";
import { FrameBudget } from "./frame-budget.ts";

/** Maximum number of frames processed per turn of the event loop. */
export const FRAMES_PER_TURN = 1_000;

/**
 * Passes on a peer's data within its frame budget, at most `FRAMES_PER_TURN` frames per turn of the event loop. If the
 * peer exceeds the budget, the connection is closed.
 */
export class FramePace implements Pace {
  readonly #budget: FrameBudget;
  #inTurn = 0;
  #isTurnCounted = false;

  /** @param preface number of bytes before the first frame */
  constructor(preface = 0, clock: Clock = systemClock) {
    this.#budget = new FrameBudget(clock, preface);
  }

  next(chunk: Buffer, start: number): number {
    if (this.#inTurn >= FRAMES_PER_TURN) return start;
    const { end, frames } = this.#budget.read(chunk, start, FRAMES_PER_TURN - this.#inTurn);
    this.#inTurn += frames;
    if (!this.#isTurnCounted) setImmediate(() => this.#nextTurn());
    this.#isTurnCounted = true;
    return end;
  }

  later(callback: () => void): void {
    setImmediate(callback);
  }

  #nextTurn(): void {
    this.#isTurnCounted = false;
    this.#inTurn = 0;
  }
}
