import {
  type EvictionStep,
  type ExplainedRound,
  type ExplainedThreshold,
  type Neighbour,
  type PodExplanation,
  refusalReasons,
} from "../../eviction/index.ts";
import { age, type Output, paint, table } from "../output.ts";
import { plainText } from "../plain-text.ts";

type Round = PodExplanation["rounds"][number];

/** The page of `nodekeeper explain pod`: what became of the pod first, then each round and what was done. */
export function explanationPage(explanation: PodExplanation, output: Output): string {
  const { namespace, name, uid, rounds, steps } = explanation;
  const pod = rounds.findLast((round) => round.pod !== null)?.pod;
  const about = pod
    ? `${pod.qosLevel}, ${pod.qosClass}, priority ${pod.priority}, grace period ${pod.gracePeriodSeconds} s`
    : "";
  return [
    `${paint(output, "bold", plainText(`Pod ${namespace}/${name}`))}  (${plainText(uid)})\n`,
    about ? `${about}\n` : "",
    `${paint(output, verdictColour(explanation), verdictOf(explanation))}\n`,
    ...rounds.map((round) => `\n${roundText(round, output)}`),
    steps.length > 0 ? `\n${paint(output, "bold", "What was done")}\n${stepLines(steps)}` : "",
  ].join("");
}

/** One sentence: what became of the pod, and why. */
export function verdictOf({ rounds, steps }: PodExplanation): string {
  const chosen = rounds.findLast((round) => round.victim !== null);
  const victim = chosen?.victim;
  if (!chosen || !victim) return whyNot(rounds);
  const why = plainText(`${victim.plugin} asked for it: ${victim.reason}`);
  const later = rounds.filter((round) => round.id > chosen.id);
  const outcome = later.findLast((round) => round.outcome !== null)?.outcome;
  const at = time(chosen.at);
  const last = steps.at(-1);
  if (outcome?.result === "gone") return `Evicted at ${at} (round ${chosen.id}): ${why}`;
  if (outcome?.result === "failed")
    return `Chosen at ${at} and not evicted: ${plainText(outcome.message)}. ${why}`;
  if (outcome?.result === "withdrawn")
    return `Chosen at ${at} and spared after all: ${plainText(outcome.message)}. ${why}`;
  const now = last ? `; last: ${plainText(last.message)}` : "";
  return `Its eviction began at ${at} (round ${chosen.id})${now}. ${why}`;
}

function whyNot(rounds: readonly Round[]): string {
  const last = rounds.at(-1);
  if (!last) return "No recorded round was about it.";
  if (last.dryRunVictim) {
    return plainText(`Not evicted: ${last.dryRunVictim.plugin} asked for it and is in dry run`);
  }
  const [refusal] = last.refusals;
  const who = refusal ? `${refusal.plugin} asked for it, but ` : "";
  if (last.exclusion) return plainText(`Not evicted: ${who}${exclusionText(last.exclusion)}`);
  if (refusal) return plainText(`Not evicted: ${who}${refusal.message}`);
  return plainText(`Not evicted: ${last.place?.why ?? "nobody asked for it"}`);
}

// "pods with a critical priority are not evicted (priority 2000000000)"
function exclusionText({ reason, detail }: { reason: string; detail: string }): string {
  const rule = (refusalReasons as Readonly<Record<string, string>>)[reason] ?? reason;
  return rule === detail ? rule : `${rule} (${detail})`;
}

function verdictColour(explanation: PodExplanation) {
  const verdict = verdictOf(explanation);
  if (verdict.startsWith("Evicted")) return "red";
  return verdict.startsWith("Not evicted") ? "green" : "yellow";
}

function roundText(round: Round, output: Output): string {
  const again =
    round.times > 1 ? `, and the same ${round.times - 1} times more until ${time(round.until)}` : "";
  const heading = `Round ${round.id} at ${time(round.at)}${again}`;
  return [
    `${paint(output, "bold", heading)}\n`,
    ...round.thresholds.map((threshold) => line("met", thresholdText(threshold, round.at))),
    ...round.failures.map(({ plugin, call, failure }) => line("failed", `${call} of ${plugin}: ${failure}`)),
    ...askLines(round),
    ...round.refusals.map(({ plugin, message }) => line("refused", `to ${plugin}: ${message}`)),
    ...(round.exclusion ? [line("candidate", `no: ${exclusionText(round.exclusion)}`)] : []),
    ...round.withdrawals.map(({ reason }) => line("withdrawn", reason)),
    ...(round.outcome ? [line("ended", `${round.outcome.result}: ${round.outcome.message}`)] : []),
    ranking(round, output),
  ].join("");
}

function thresholdText(threshold: ExplainedThreshold, now: number): string {
  const { plugin, scope, metType, observedValue, thresholdValue, operator, gracePeriodSeconds } = threshold;
  const side = operator === "lessThan" ? "below" : "above";
  const values = `${scope || "its value"} is ${observedValue ?? "unknown"}, ${side} ${thresholdValue ?? "unknown"}`;
  const lasting = threshold.confirmed
    ? `for ${age(now - threshold.since)}`
    : `for ${age(now - threshold.since)} of ${gracePeriodSeconds} s`;
  const named = threshold.named === null ? "" : `; named ${threshold.named} pods`;
  return `${plugin} (${metType}): ${values}, ${lasting}${named}${threshold.dryRun ? "; dry run" : ""}`;
}

function askLines({ victim, dryRunVictim }: Round): string[] {
  const chosen = victim ?? dryRunVictim;
  if (!chosen) return [];
  const grace = chosen.gracePeriodSeconds === null ? "its own" : `${chosen.gracePeriodSeconds} s`;
  const how = victim ? "chosen" : "would be chosen but for dry run";
  return [
    ...chosen.asks.map(({ plugin, kind, reason, graceProblem }) =>
      line("asked", `by ${plugin} (${kind}): ${reason}${graceProblem ? `; ${graceProblem}` : ""}`),
    ),
    line(how, `as number ${chosen.order} of the round, grace period: ${grace}`),
  ];
}

// Who goes first stands first: the least important.
function ranking({ place, others, candidates }: ExplainedRound, output: Output): string {
  if (place === null) return "";
  const shown = [place, ...others].sort((a, b) => a.rank - b.rank);
  const rows = shown.map((one: Neighbour) => [
    `  ${one.rank}`,
    plainText(`${one.namespace}/${one.name}`, 80),
    one.qosLevel,
    one.qosClass,
    String(one.priority),
    one.outcome,
    plainText(one.why, 160),
  ]);
  const rest = candidates - shown.length;
  return [
    table(output, ["  RANK", "POD", "LEVEL", "CLASS", "PRIORITY", "OUTCOME", "WHY"], rows, (row, column) =>
      shown[row] === place && column <= 1 ? "cyan" : undefined,
    ),
    rest > 0 ? `  and ${rest} candidates more that nobody asked for, or further up\n` : "",
  ].join("");
}

function stepLines(steps: readonly EvictionStep[]): string {
  return steps.map(({ at, message }) => `  ${time(at)}  ${plainText(message)}\n`).join("");
}

function line(what: string, text: string): string {
  return `  ${what.padEnd(10)} ${plainText(text, 500)}\n`;
}

function time(ms: number): string {
  return new Date(ms).toISOString();
}
