import { answerOf, type PluginAnswers } from "@nodekeeper/api/decide";
import type { ApiAnswers } from "@nodekeeper/api/openapi";

/** The readings of all plugins in one round. */
export type RoundReadings = ApiAnswers["eviction/readings"]["rounds"][number];

const MOST_ROUNDS = 120;

/** The readings of the last 120 rounds: ten minutes at the default period. Older readings are only in the records. */
export class RecentReadings {
  #rounds: RoundReadings[] = [];

  /** @param at wall milliseconds */
  add(at: number, answers: readonly PluginAnswers[]): void {
    this.#rounds.push({ at, readings: readingsOf(answers) });
    if (this.#rounds.length > MOST_ROUNDS) this.#rounds.shift();
  }

  /** The newest round; undefined before the first. */
  get last(): RoundReadings | undefined {
    return this.#rounds.at(-1);
  }

  /** Wall milliseconds of the oldest round; undefined before the first. */
  get oldestAt(): number | undefined {
    return this.#rounds[0]?.at;
  }

  /**
   * Returns the rounds between two times (wall milliseconds, inclusive), oldest first: the first of each `stepMs`, or
   * all if it is 0.
   */
  between(since: number, until: number, stepMs: number): RoundReadings[] {
    const found = this.#rounds.filter(({ at }) => at >= since && at <= until);
    if (stepMs === 0) return found;
    const stepOf = ({ at }: RoundReadings) => Math.floor(at / stepMs);
    return found.filter((round, index) => index === 0 || stepOf(round) !== stepOf(found[index - 1]!));
  }
}

/** Returns the readings of the plugins that answered. A failed call has no values. */
export function readingsOf(answers: readonly PluginAnswers[]): RoundReadings["readings"] {
  return answers.flatMap(({ plugin, threshold }) => {
    const answer = answerOf(threshold);
    if (!answer) return [];
    const { scope, operator, unit, metType, observedValue, thresholdValue } = answer;
    const values = { observed: observedValue, threshold: thresholdValue, met: metType };
    return [{ plugin, scope, operator, ...(unit === undefined ? {} : { unit }), ...values }];
  });
}
