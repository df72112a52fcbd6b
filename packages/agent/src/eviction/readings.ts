import { answerOf, type MetType, type PluginAnswers, type ThresholdAnswer } from "./decide/answers.ts";

/** A plugin's observed value against its threshold. Plain JSON. */
export interface Reading extends Pick<ThresholdAnswer, "scope" | "operator" | "unit"> {
  plugin: string;
  /** Null where the plugin reports no value while its threshold is not met. */
  observed: number | null;
  threshold: number | null;
  met: MetType;
}

/** What the plugins answered in one round. */
export interface RoundReadings {
  /** Wall milliseconds. */
  at: number;
  readings: readonly Reading[];
}

const MOST_ROUNDS = 120;

/** The readings of the last rounds: at most 120, ten minutes at the default period. Records have those of recorded rounds. */
export class RecentReadings {
  #rounds: RoundReadings[] = [];

  /** @param at wall milliseconds */
  add(at: number, answers: readonly PluginAnswers[]): void {
    this.#rounds.push({ at, readings: answers.flatMap(readingOf) });
    if (this.#rounds.length > MOST_ROUNDS) this.#rounds.shift();
  }

  /** The newest round; undefined before the first. */
  get last(): RoundReadings | undefined {
    return this.#rounds.at(-1);
  }

  /** Rounds from a time on (wall milliseconds), oldest first. */
  since(at: number): RoundReadings[] {
    return this.#rounds.filter((round) => round.at >= at);
  }
}

// A failed call has no values.
function readingOf({ plugin, threshold }: PluginAnswers): Reading[] {
  const answer = answerOf(threshold);
  if (!answer) return [];
  const { scope, operator, unit, metType, observedValue, thresholdValue } = answer;
  const values = { observed: observedValue, threshold: thresholdValue, met: metType };
  return [{ plugin, scope, operator, ...(unit === undefined ? {} : { unit }), ...values }];
}
