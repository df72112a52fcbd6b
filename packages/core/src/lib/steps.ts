import type { LoopTurns } from "./loop-turns.ts";

/** Work in steps that are short, a few milliseconds at most; what it yields between them has no meaning. */
export type Steps<Result> = Generator<undefined, Result, undefined>;

/** Does all steps at once. Throws what a step throws. */
export function completed<Result>(steps: Steps<Result>): Result {
  for (;;) {
    const { done, value } = steps.next();
    if (done) return value;
  }
}

/**
 * Does the steps over as many turns of the event loop as they need, so that other work is done in between. Rejects with
 * what a step throws.
 */
export async function inTurns<Result>(steps: Steps<Result>, turns: LoopTurns): Promise<Result> {
  for (;;) {
    await turns.pass();
    const { done, value } = steps.next();
    if (done) return value;
  }
}

/** Counts the small units of work of one step, such as values looked at. */
export class StepMeter {
  readonly #most: number;
  #spent = 0;

  /** @param most units in one step */
  constructor(most: number) {
    this.#most = most;
  }

  /** Counts units; answers whether the step is to end here. */
  spend(units = 1): boolean {
    this.#spent += units;
    if (this.#spent < this.#most) return false;
    this.#spent = 0;
    return true;
  }
}
