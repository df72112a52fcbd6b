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

  /** Rounds of a time (wall milliseconds, inclusive), oldest first: the first of each `stepMs`, or all for 0. */
  between(since: number, until: number, stepMs: number): RoundReadings[] {
    const found = this.#rounds.filter(({ at }) => at >= since && at <= until);
    if (stepMs === 0) return found;
    const stepOf = ({ at }: RoundReadings) => Math.floor(at / stepMs);
    return found.filter((round, index) => index === 0 || stepOf(round) !== stepOf(found[index - 1]!));
  }
}

/** The readings of plugins that answered: a failed call has no values. */
export function readingsOf(answers: readonly PluginAnswers[]): Reading[] {
  return answers.flatMap(({ plugin, threshold }) => {
    const answer = answerOf(threshold);
    if (!answer) return [];
    const { scope, operator, unit, metType, observedValue, thresholdValue } = answer;
    const values = { observed: observedValue, threshold: thresholdValue, met: metType };
    return [{ plugin, scope, operator, ...(unit === undefined ? {} : { unit }), ...values }];
  });
}
