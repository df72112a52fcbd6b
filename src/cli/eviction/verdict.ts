import type { PodExplanation, Victim } from "../../eviction/index.ts";
import type { Colour } from "../output.ts";
import { plainText } from "../plain-text.ts";
import { reasonText, secondsOf, timeOf } from "./wording.ts";

type Round = PodExplanation["rounds"][number];

/** What became of a pod, in one sentence. */
export interface Verdict {
  text: string;
  colour: Colour;
}

/** What became of the pod, and why. The last time it was chosen counts; else why it was not, the last time it was asked for. */
export function verdictOf({ rounds, steps }: PodExplanation): Verdict {
  const chosen = rounds.findLast((round) => round.victim !== null);
  if (!chosen?.victim)
    return { colour: "green", text: plainText(`Not evicted: ${whyNot(rounds.at(-1))}`, 600) };
  const why = wishOf(chosen.victim);
  const at = `${timeOf(chosen.at)} (round ${chosen.id})`;
  const outcome = rounds.findLast((round) => round.id > chosen.id && round.outcome !== null)?.outcome;
  const last = steps.at(-1);
  if (outcome?.result === "gone") {
    const later = last && last.at > chosen.at ? `, gone ${secondsOf(last.at - chosen.at)} later` : "";
    return { colour: "red", text: plainText(`Evicted at ${at}${later}: ${why}`, 600) };
  }
  const but =
    outcome?.result === "failed"
      ? `Chosen at ${at} but not evicted: ${outcome.message}`
      : outcome
        ? `Chosen at ${at} but spared after all: ${outcome.message}`
        : `Its eviction began at ${at} and has not ended${last ? `; last: ${last.message}` : ""}`;
  return { colour: "yellow", text: plainText(`${but}. ${why}`, 600) };
}

function wishOf({ plugin, kind, reason }: Pick<Victim, "plugin" | "kind" | "reason">): string {
  return `${plugin} ${kind === "forced" ? "asked for it" : "allowed it to go"}: ${reason}`;
}

function whyNot(round: Round | undefined): string {
  if (!round) return "no recorded round was about it";
  const { dryRunVictim, withdrawals, refusals, exclusion, place, thresholds } = round;
  if (dryRunVictim) return `${wishOf(dryRunVictim)}; the plugin is in dry run`;
  const [withdrawal] = withdrawals;
  if (withdrawal) return `it was to go, but ${withdrawal.reason}`;
  const [refusal] = refusals;
  const who = refusal ? `${refusal.plugin} asked for it, but ` : "";
  if (exclusion) return `${who}${reasonText(exclusion.reason, exclusion.detail)}`;
  if (refusal) return `${who}${reasonText(refusal.reason, refusal.message)}`;
  const isPressed = thresholds.some(({ confirmed }) => confirmed);
  return `${place?.why ?? "no plugin asked for it"}${isPressed ? ", though a threshold was met" : ""}`;
}
