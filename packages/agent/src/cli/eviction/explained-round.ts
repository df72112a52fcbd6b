import {
  type ExplainedThreshold,
  heldText,
  methodOf,
  type Neighbour,
  type PodExplanation,
  thresholdText,
  type Victim,
} from "../../eviction/index.ts";
import { age, type Output, paint, table } from "../output.ts";
import { plainText } from "../plain-text.ts";
import { counted, graceText, labelled, outcomeText, reasonText, timeOf } from "../wording.ts";

type Round = PodExplanation["rounds"][number];

/** A round from the point of view of a pod: met thresholds, requests, the decision, and the ranking. */
export function roundText(round: Round, output: Output): string {
  const { id, at, times, until, failures, exclusion, withdrawals, outcome } = round;
  const again = times > 1 ? `, and the same ${counted(times - 1, "time")} more until ${timeOf(until)}` : "";
  return [
    `${paint(output, "bold", `Round ${id} at ${timeOf(at)}${again}`)}\n`,
    outcome ? labelled("ended", outcomeText(outcome)) : "",
    ...round.thresholds.map((threshold) => labelled("met", metText(threshold, at))),
    ...failures.map(({ plugin, call, failure }) =>
      labelled("failed", `${methodOf(call)} of ${plugin}: ${failure}`),
    ),
    ...choiceLines(round),
    ...refusalLines(round),
    exclusion ? labelled("candidate", `no: ${reasonText(exclusion.reason, exclusion.detail)}`) : "",
    ...withdrawals.map(({ reason }) => labelled("withdrawn", reason)),
    ranking(round, output),
  ].join("");
}

function metText(threshold: ExplainedThreshold, now: number): string {
  const { plugin, scope, metType, since, gracePeriodSeconds } = threshold;
  const grace = gracePeriodSeconds > 0 ? `, grace period ${gracePeriodSeconds} s` : "";
  const lasting = `for ${age(now - since)}${grace}${threshold.confirmed ? "" : " not over yet"}`;
  const named = threshold.named === null ? "" : `; named ${counted(threshold.named, "pod")}`;
  const values = thresholdText(scope, threshold);
  const held = threshold.held ? `; on hold: ${heldText(threshold.held, now)}` : "";
  return `${plugin} (${metType}): ${values}, ${lasting}${named}${held}${threshold.dryRun ? "; dry run" : ""}`;
}

function choiceLines(round: Round): string[] {
  const { victim, dryRunVictim, pod } = round;
  const chosen = victim ?? dryRunVictim;
  if (!chosen) return [];
  const grace = `Grace period: ${graceText(chosen.gracePeriodSeconds, pod?.gracePeriodSeconds)}`;
  const order = ordinalOf(chosen.order);
  return [
    ...chosen.asks.map(({ plugin, kind, reason, graceProblem }) =>
      labelled("requested", `by ${plugin} (${kind}): ${reason}${graceProblem ? `; ${graceProblem}` : ""}`),
    ),
    victim
      ? labelled("selected", `${order} in this round. ${grace}`)
      : labelled("dry run", `would have been selected ${order} in this round. ${grace}`),
    labelled("because", whyThisOne(chosen, round)),
  ];
}

// The rule by which the pod was selected; the table below has the reasons of the others.
function whyThisOne({ kind, plugin, asks }: Victim, { place, others, candidates }: Round): string {
  if (asks[0]?.selectedBy === "ranking") {
    return `Hard threshold: ${plugin} named no pod that can be evicted in 3 rounds in a row, so that the lowest-ranked pod it was offered was selected.`;
  }
  // Lower-ranked pods that were not requested: the plugin preferred this one to them.
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

// The text of an exclusion is not repeated for each plugin.
function refusalLines({ refusals, exclusion, dryRunVictim }: Round): string[] {
  return refusals
    .filter(({ reason }) => !(dryRunVictim && reason === "dryRun"))
    .map(({ plugin, reason, message }) => {
      const why = reason === exclusion?.reason ? "the pod is not a candidate" : reasonText(reason, message);
      return labelled("refused", `to ${plugin}: ${why}`);
    });
}

function ranking({ place, others, candidates, refusals }: Round, output: Output): string {
  if (place === null) return "";
  const rank = `${place.rank} of ${counted(candidates, "candidate")}, 1 is evicted first`;
  if (others.length === 0) {
    // With refusals the reason is already shown.
    const why = place.outcome === "victim" ? "no other pod was requested" : place.why;
    return labelled("rank", refusals.length > 0 ? rank : `${rank}; ${why}`);
  }
  const shown = [place, ...others].sort((a, b) => a.rank - b.rank);
  const rest = candidates - shown.length;
  return [
    labelled("rank", `${rank}; requested pods:`),
    table(
      output,
      ["  RANK", "POD", "LEVEL", "CLASS", "PRIORITY", "OUTCOME", "WHY"],
      shown.map((one) => rankingRow(one, one === place)),
      (row, column) => (shown[row] === place && column <= 1 ? "cyan" : undefined),
    ),
    rest > 0 ? `  and ${counted(rest, "more candidate")}\n` : "",
  ].join("");
}

const outcomeWords: Readonly<Record<Neighbour["outcome"], string>> = {
  victim: "selected",
  waiting: "queued",
  refused: "not evicted",
  ineligible: "not evicted",
  notAsked: "not requested",
};

function rankingRow(one: Neighbour, isIt: boolean): string[] {
  return [
    `${isIt ? "> " : "  "}${one.rank}`,
    plainText(`${one.namespace}/${one.name}`, 80),
    one.qosLevel,
    one.qosClass,
    String(one.priority),
    outcomeWords[one.outcome],
    plainText(one.why, 200),
  ];
}
