import type { LoopTurns } from "./loop-turns.ts";

/** Work in steps of a few milliseconds each. */
export type Steps<Result> = Generator<undefined, Result, undefined>;

/** Runs all steps without yielding. Throws the error of a step. */
export function completed<Result>(steps: Steps<Result>): Result {
  for (;;) {
    const { done, value } = steps.next();
    if (done) return value;
  }
}

/**
 * Runs the steps over several turns of the event loop, so that other work proceeds in between. Rejects with the error
 * of a step.
 */
export async function inTurns<Result>(steps: Steps<Result>, turns: LoopTurns): Promise<Result> {
  for (;;) {
    await turns.pass();
    const { done, value } = steps.next();
    if (done) return value;
  }
}

/** Counts the units of work in one step, such as parsed values. */
export class StepMeter {
  readonly #most: number;
  #spent = 0;

  /** @param most maximum number of units per step */
  constructor(most: number) {
    this.#most = most;
  }

  /** Counts units. Returns whether the step must end. */
  spend(units = 1): boolean {
    this.#spent += units;
    if (this.#spent < this.#most) return false;
    this.#spent = 0;
    return true;
  }
}
