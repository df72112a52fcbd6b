import type { RoundSummary } from "../../eviction/index.ts";
import { type Output, paint } from "../output.ts";
import { plainText } from "../plain-text.ts";
import { outcomeText, refusalWord, timeOf } from "./wording.ts";

/** One round in a line of `nodekeeper rounds`. */
export function roundLine(round: RoundSummary, output: Output): string {
  const { at, id, candidates, pods, victims, dryRunVictims, met, failures, outcomes, withdrawals } = round;
  const refusals = Object.entries(round.refusals).map(
    ([reason, count]) => `${count} (${refusalWord(reason)})`,
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

type Named = RoundSummary["victims"][number];

function namesOf(pods: readonly Named[]): string {
  return pods.map(nameOf).join(", ");
}

function nameOf({ namespace, name, uid }: Named): string {
  return name === "" ? `the pod with UID ${uid}` : `${namespace}/${name}`;
}
