// Sentences about decisions, from what records have: pure, for the commands and for the page in the browser.
export { type ComparedKey, comparisonOf, type Rankable, type RankKeyName } from "../decide/rank.ts";
export { thresholdText } from "../decide/threshold-text.ts";
export { conditionTaintsText } from "./condition.ts";
export { coverageLines, missingLines } from "./coverage.ts";
export { timelineOf } from "./ending.ts";
export { heldText } from "./held.ts";
export { podText } from "./pod.ts";
export {
  differenceText,
  type ReplayLabel,
  type ReplayLine,
  replayLines,
  replaySentences,
} from "./replay.ts";
export { candidateOutcomes, type RoundLine, rankText, roundHeading, roundLines } from "./round.ts";
export { nodeTaintText, shownTaints } from "./taint.ts";
export { age, counted, graceText, methodOf, outcomeText, reasonText, refusalWord } from "./text.ts";
export { timeOf } from "./time.ts";
export { unservedText } from "./unserved.ts";
export { type Verdict, verdictOf } from "./verdict.ts";
