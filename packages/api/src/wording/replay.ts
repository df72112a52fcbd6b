import type { PodReference } from "../decide/index.ts";
import type { PolicyDifference, Replay, ReplayedRound } from "../replay/index.ts";
import { counted, graceText, refusalWord } from "./text.ts";

/** Kind of a difference: `-` happened but would not have, `+` would also have happened, `~` differs, `?` is unknown. */
export type ReplayLabel =
  | "- evicted"
  | "+ evicted"
  | "- dry run"
  | "+ dry run"
  | "~ grace"
  | "~ order"
  | "~ refused"
  | "- taint"
  | "+ taint"
  | "? unknown";

/** One difference between a recorded round and its replay. */
export interface ReplayLine {
  label: ReplayLabel;
  /** The pod concerned. Null if the text concerns the round. */
  pod: PodReference | null;
  /** May contain text from plugins. Neither escaped nor truncated. */
  text: string;
}

/** Returns the differences in a round: victims first, unknowns last. */
export function replayLines(round: ReplayedRound): ReplayLine[] {
  const { notEvicted, added, dryRun, graceChanged, refusals, taints, unasked, otherOffer } = round;
  const line = (label: ReplayLabel, text: string, pod: PodReference | null = null) => ({ label, pod, text });
  return [
    ...notEvicted.map((pod) => line("- evicted", pod.why, pod)),
    ...added.map((pod) => line("+ evicted", pod.why, pod)),
    ...dryRun.missing.map((pod) =>
      line("- dry run", `would not have been evicted${pod.why === null ? "" : `: ${pod.why}`}`, pod),
    ),
    ...dryRun.added.map((pod) => line("+ dry run", "would have been evicted; dry run", pod)),
    ...graceChanged.map((pod) =>
      line("~ grace", `${graceText(pod.after)} instead of ${graceText(pod.before)}`, pod),
    ),
    ...(isOtherOrder(round) ? [line("~ order", round.after.map(nameOf).join(", "))] : []),
    ...Object.entries(refusals).map(([reason, [then, now]]) =>
      line("~ refused", `${refusalWord(reason)}: ${now} instead of ${then}`),
    ),
    ...taints.missing.map((taint) => line("- taint", taint)),
    ...taints.added.map((taint) => line("+ taint", taint)),
    ...unasked.map((plugin) =>
      line("? unknown", `GetTopEvictionPods of ${plugin} would have been called: its answer is not recorded`),
    ),
    ...otherOffer.map((plugin) =>
      line("? unknown", `${plugin} would have been offered other pods: its answer might differ`),
    ),
  ];
}

/**
 * Summarizes a replay in sentences: the victims of both policies, those in dry run (empty if there are none), the
 * number of rounds that differ, and the number of unknown rounds (empty if there are none).
 */
export function replaySentences(replay: Replay) {
  const { victimsBefore, victimsAfter, dryRunBefore, dryRunAfter, differing, uncertain } = replay;
  const rounds = counted(differing.length, "round");
  return {
    victims: `${counted(victimsBefore, "victim")} recorded, ${victimsAfter} with this policy.`,
    dryRun:
      dryRunBefore + dryRunAfter === 0
        ? ""
        : `In dry run, not evicted: ${counted(dryRunBefore, "victim")} recorded, ${dryRunAfter} with this policy.`,
    differing:
      differing.length === 0
        ? "No round differs."
        : `${rounds} ${differing.length === 1 ? "differs" : "differ"}. Each round starts from its recorded state: later effects of a difference are not simulated.`,
    uncertain:
      uncertain === 0
        ? ""
        : `Not known for ${counted(uncertain, "more round")}: a plugin would have been called, or called with other pods, and its answer is not recorded.`,
  };
}

/** Formats a setting that differs: "3 instead of 1". */
export function differenceText({ recorded, replayed }: PolicyDifference): string {
  return `${JSON.stringify(replayed) ?? "unset"} instead of ${JSON.stringify(recorded) ?? "unset"}`;
}

// Whether the victims are the same in a different order.
function isOtherOrder({ before, after }: ReplayedRound): boolean {
  const isSame =
    before.length !== after.length || before.every(({ uid }, index) => uid === after[index]?.uid);
  const known = new Set(before.map(({ uid }) => uid));
  return !isSame && after.every(({ uid }) => known.has(uid));
}

function nameOf({ namespace, name }: PodReference): string {
  return `${namespace}/${name}`;
}
