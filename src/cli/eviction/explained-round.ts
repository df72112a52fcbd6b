import type { ExplainedThreshold, Neighbour, PodExplanation, Victim } from "../../eviction/index.ts";
import { age, type Output, paint, table } from "../output.ts";
import { plainText } from "../plain-text.ts";
import { counted, graceText, labelled, reasonText, timeOf } from "./wording.ts";

type Round = PodExplanation["rounds"][number];

/** What one round meant for a pod: what was met, who asked, what was decided, and who stood beside it. */
export function roundText(round: Round, output: Output): string {
  const { id, at, times, until, failures, exclusion, withdrawals, outcome } = round;
  const again = times > 1 ? `, and the same ${counted(times - 1, "time")} more until ${timeOf(until)}` : "";
  return [
    `${paint(output, "bold", `Round ${id} at ${timeOf(at)}${again}`)}\n`,
    outcome ? labelled("ended", `${outcome.result}: ${outcome.message}`) : "",
    ...round.thresholds.map((threshold) => labelled("met", thresholdText(threshold, at))),
    ...failures.map(({ plugin, call, failure }) => labelled("failed", `${call} of ${plugin}: ${failure}`)),
    ...choiceLines(round),
    ...refusalLines(round),
    exclusion ? labelled("candidate", `no: ${reasonText(exclusion.reason, exclusion.detail)}`) : "",
    ...withdrawals.map(({ reason }) => labelled("withdrawn", reason)),
    ranking(round, output),
  ].join("");
}

function thresholdText(threshold: ExplainedThreshold, now: number): string {
  const { plugin, scope, metType, observedValue, thresholdValue, operator, since, gracePeriodSeconds } =
    threshold;
  const side = operator === "lessThan" ? "<" : ">";
  const values = `${scope || "value"} observed ${observedValue ?? "unknown"} ${side} threshold ${thresholdValue ?? "unknown"}`;
  const grace = gracePeriodSeconds > 0 ? `, grace period ${gracePeriodSeconds} s` : "";
  const lasting = `for ${age(now - since)}${grace}${threshold.confirmed ? "" : ": not long enough yet"}`;
  const named = threshold.named === null ? "" : `; named ${counted(threshold.named, "pod")}`;
  return `${plugin} (${metType}): ${values}, ${lasting}${named}${threshold.dryRun ? "; dry run" : ""}`;
}

function choiceLines({ victim, dryRunVictim, pod }: Round): string[] {
  const chosen = victim ?? dryRunVictim;
  if (!chosen) return [];
  const grace = `grace period ${graceText(chosen.gracePeriodSeconds, pod?.gracePeriodSeconds)}`;
  return [
    ...chosen.asks.map(({ plugin, kind, reason, graceProblem }) =>
      labelled("asked", `by ${plugin} (${kind}): ${reason}${graceProblem ? `; ${graceProblem}` : ""}`),
    ),
    victim
      ? labelled("chosen", `as number ${victim.order} of the round, ${grace}`)
      : labelled("dry run", `but for it, number ${chosen.order} of the round, ${grace}`),
    labelled("because", whyThisOne(chosen)),
  ];
}

// The rule that took it; the table below tells what the others had before it.
function whyThisOne({ kind, plugin, asks }: Victim): string {
  if (kind === "soft") return "one pod asked for softly goes each round, the least important of them";
  return asks[0]?.source === "threshold"
    ? `${plugin} was asked for the one pod that has to go, and named it`
    : `${plugin} forces it: such pods go, the least important first, as many as fit a round`;
}

// What the exclusion tells need not be told for each plugin.
function refusalLines({ refusals, exclusion, dryRunVictim }: Round): string[] {
  return refusals
    .filter(({ reason }) => !(dryRunVictim && reason === "dryRun"))
    .map(({ plugin, reason, message }) => {
      const why = reason === exclusion?.reason ? "it is no candidate" : reasonText(reason, message);
      return labelled("refused", `to ${plugin}: ${why}`);
    });
}

function ranking({ place, others, candidates, refusals }: Round, output: Output): string {
  if (place === null) return "";
  const rank = `${place.rank} of ${counted(candidates, "candidate")}, 1 is the least important`;
  if (others.length === 0) {
    // A refusal has told why already.
    const why = place.outcome === "victim" ? "nobody else was asked for" : place.why;
    return labelled("rank", refusals.length > 0 ? rank : `${rank}: ${why}`);
  }
  const shown = [place, ...others].sort((a, b) => a.rank - b.rank);
  const rest = candidates - shown.length;
  return [
    labelled("rank", `${rank}; those asked for:`),
    table(
      output,
      ["  RANK", "POD", "LEVEL", "CLASS", "PRIORITY", "OUTCOME", "WHY"],
      shown.map((one) => rankingRow(one, one === place)),
      (row, column) => (shown[row] === place && column <= 1 ? "cyan" : undefined),
    ),
    rest > 0 ? `  and ${counted(rest, "more candidate")}\n` : "",
  ].join("");
}

function rankingRow(one: Neighbour, isIt: boolean): string[] {
  return [
    `${isIt ? "> " : "  "}${one.rank}`,
    plainText(`${one.namespace}/${one.name}`, 80),
    one.qosLevel,
    one.qosClass,
    String(one.priority),
    one.outcome,
    plainText(one.why, 200),
  ];
}
