import type { RoundSummary } from "@nodekeeper/api/records";
import { plainText } from "@nodekeeper/api/text";
import { outcomeText, refusalWord, timeOf } from "@nodekeeper/api/wording";
import { type Output, paint } from "../output.ts";

/** Formats a round as a line of `nodekeeper rounds`. */
export function roundLine(round: RoundSummary, output: Output): string {
  const { at, id, candidates, pods, victims, dryRunVictims, met, failures, outcomes, withdrawals } = round;
  const refusals = Object.entries(round.refusals).map(
    ([reason, count]) => `${count} (${reason === "paused" ? pausedText(round) : refusalWord(reason)})`,
  );
  const parts = [
    met.length > 0 ? paint(output, "yellow", plainText(`met: ${met.join(", ")}`, 600)) : "",
    victims.length > 0 ? paint(output, "red", plainText(`evicts: ${namesOf(victims)}`, 1_000)) : "",
    dryRunVictims.length > 0 ? plainText(`dry run, would evict: ${namesOf(dryRunVictims)}`, 1_000) : "",
    refusals.length > 0 ? plainText(`not evicted: ${refusals.join(", ")}`) : "",
    withdrawals > 0 ? `withdrawn: ${withdrawals}` : "",
    ...outcomes.map((outcome) => plainText(`${nameOf(outcome)} ${outcomeText(outcome)}`)),
    failures.length > 0 ? paint(output, "red", plainText(`failed: ${failures.join(", ")}`, 600)) : "",
  ].filter((part) => part !== "");
  const head = `${timeOf(at)}  round ${id}  ${candidates} of ${pods} pods are candidates`;
  return `${[head, ...parts].join("; ")}\n`;
}

/** "retry in 45 s: PodDisruptionBudget default/thumb". For several pods: the earliest retry and all budgets. */
function pausedText({ at, paused = [] }: RoundSummary): string {
  if (paused.length === 0) return refusalWord("paused");
  const seconds = Math.max(0, Math.ceil((Math.min(...paused.map(({ retryAt }) => retryAt)) - at) / 1000));
  const retry = `${paused.length > 1 ? "first retry" : "retry"} in ${seconds} s`;
  const budgets = [...new Set(paused.map(({ budget }) => budget).filter((name) => name !== null))].sort();
  if (budgets.length === 0) return `${retry}, after a failed attempt`;
  return `${retry}: PodDisruptionBudget${budgets.length > 1 ? "s" : ""} ${budgets.join(", ")}`;
}

type Named = RoundSummary["victims"][number];

function namesOf(pods: readonly Named[]): string {
  return pods.map(nameOf).join(", ");
}

function nameOf({ namespace, name, uid }: Named): string {
  return name === "" ? `the pod with UID ${uid}` : `${namespace}/${name}`;
}
