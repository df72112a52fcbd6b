import { isFinal, thresholdText, type Victim } from "../decide/index.ts";
import type { ExplainedRound, ExplainedThreshold, Neighbour, PodExplanation } from "../records/index.ts";
import { age, counted, failureText, graceText, outcomeText, reasonText } from "./text.ts";
import { timeOf } from "./time.ts";
import { whyNoPodText } from "./unserved.ts";

type Round = PodExplanation["rounds"][number];

/** A fact about a pod in a round: "met", "py-soft (soft): disk-io 42 > threshold 10, for 12s". */
export interface RoundLine {
  label: string;
  text: string;
}

/** Formats when a round was, and its repetitions: "Round 7 at …, and the same 3 times more until …". */
export function roundHeading({ id, at, times, until }: Round): string {
  const again = times > 1 ? `, and the same ${counted(times - 1, "time")} more until ${timeOf(until)}` : "";
  return `Round ${id} at ${timeOf(at)}${again}`;
}

/** Describes a round from a pod's point of view: met thresholds, requests, the decision. `rankText` has the ranking. */
export function roundLines(round: ExplainedRound): RoundLine[] {
  const { at, failures, exclusion, withdrawals, outcome } = round;
  return [
    ...(outcome ? [{ label: isFinal(outcome) ? "ended" : "overdue", text: outcomeText(outcome) }] : []),
    ...round.thresholds.map((threshold) => ({ label: "met", text: metText(threshold, at) })),
    ...failures.map((failure) => ({ label: "failed", text: failureText(failure) })),
    ...choiceLines(round),
    ...refusalLines(round),
    ...(exclusion
      ? [{ label: "candidate", text: `no: ${reasonText(exclusion.reason, exclusion.detail)}` }]
      : []),
    ...withdrawals.map(({ reason }) => ({ label: "withdrawn", text: reason })),
  ];
}

/**
 * Formats the pod's rank in a round: "3 of 3 candidates, 1 is evicted first; …". Undefined if it was not a candidate.
 */
export function rankText({ place, others, candidates, refusals }: ExplainedRound): string | undefined {
  if (place === null) return undefined;
  const rank = `${place.rank} of ${counted(candidates, "candidate")}, 1 is evicted first`;
  if (others.length > 0) return `${rank}; requested pods:`;
  // If there are refusals, the reason is already shown.
  if (refusals.length > 0) return rank;
  return `${rank}; ${place.outcome === "victim" ? "no other pod was requested" : place.why}`;
}

/** The decision about a candidate, in a word or two. */
export const candidateOutcomes: Readonly<Record<Neighbour["outcome"], string>> = {
  victim: "selected",
  waiting: "queued",
  refused: "not evicted",
  ineligible: "not evicted",
  notAsked: "not requested",
};

function metText(threshold: ExplainedThreshold, now: number): string {
  const { plugin, scope, metType, since, gracePeriodSeconds } = threshold;
  const grace = gracePeriodSeconds > 0 ? `, grace period ${gracePeriodSeconds} s` : "";
  const lasting = `for ${age(now - since)}${grace}${threshold.confirmed ? "" : " not over yet"}`;
  const why = whyNoPodText(threshold, now);
  const isAnswered = threshold.named !== null && !threshold.unserved;
  const named = isAnswered ? `; named ${counted(threshold.named!, "pod")}` : "";
  const values = thresholdText(scope, threshold);
  return `${plugin} (${metType}): ${values}, ${lasting}${named}${why ? `; ${why}` : ""}${threshold.dryRun ? "; dry run" : ""}`;
}

function choiceLines(round: ExplainedRound): RoundLine[] {
  const { victim, dryRunVictim, pod } = round;
  const chosen = victim ?? dryRunVictim;
  if (!chosen) return [];
  const grace = `Grace period: ${graceText(chosen.gracePeriodSeconds, pod?.gracePeriodSeconds)}`;
  const order = ordinalOf(chosen.order);
  return [
    ...chosen.asks.map(askLine),
    victim
      ? { label: "selected", text: `${order} in this round. ${grace}` }
      : { label: "dry run", text: `would have been selected ${order} in this round. ${grace}` },
    { label: "because", text: whyThisOne(chosen, round) },
  ];
}

function askLine({ plugin, kind, reason, graceProblem, selectedBy }: Victim["asks"][number]): RoundLine {
  const grace = graceProblem ? `; ${graceProblem}` : "";
  if (selectedBy === "ranking")
    return { label: "fallback", text: `for ${plugin} (${kind}): ${reason}${grace}` };
  return { label: "requested", text: `by ${plugin} (${kind}): ${reason}${grace}` };
}

// The rule that selected the pod. The ranking shows the reasons for the other pods.
function whyThisOne({ kind, plugin, asks }: Victim, { place, others, candidates }: ExplainedRound): string {
  if (asks[0]?.selectedBy === "ranking") {
    return `Hard threshold: ${plugin} named only pods that can't be evicted in ${asks[0].fallback?.rounds ?? 3} rounds in a row, so the lowest-ranked pod it was offered was selected.`;
  }
  // Lower-ranked pods that were not requested: the plugin preferred this one.
  const passed = place ? place.rank - 1 - others.filter(({ rank }) => rank < place.rank).length : 0;
  const overrides = passed > 0 ? ` Its choice overrides the ranking (${place?.rank} of ${candidates}).` : "";
  if (kind === "soft") {
    return `Soft eviction: at most one pod per round, lowest-ranked first.${overrides && ` ${plugin} requested no lower-ranked pod.${overrides}`}`;
  }
  return asks[0]?.source === "threshold"
    ? `Hard threshold: ${plugin} selected this pod.${overrides}`
    : `Forced eviction: ${plugin} requested this pod by name.${overrides}`;
}

function ordinalOf(order: number): string {
  return ["first", "second", "third"][order - 1] ?? `as number ${order}`;
}

// The text of an exclusion is not repeated for every plugin.
function refusalLines({ refusals, exclusion, dryRunVictim }: ExplainedRound): RoundLine[] {
  return refusals
    .filter(({ reason }) => !(dryRunVictim && reason === "dryRun"))
    .map(({ plugin, reason, message }) => {
      const why = reason === exclusion?.reason ? "the pod is not a candidate" : reasonText(reason, message);
      return { label: "refused", text: `to ${plugin}: ${why}` };
    });
}
