// Sentences about decisions, from what records have: pure, for the commands and for the page in the browser.
export { conditionTaintsText } from "./condition.ts";
export { timelineOf } from "./ending.ts";
export { podText } from "./pod.ts";
export {
  differenceText,
  type ReplayLabel,
  type ReplayLine,
  replayLines,
  replaySentences,
} from "./replay.ts";
export { candidateOutcomes, rankText, roundHeading, roundLines } from "./round.ts";
export {
  age,
  counted,
  outcomeText,
  refusalWord,
  timeOf,
} from "./text.ts";
export { type Verdict, verdictOf } from "./verdict.ts";
