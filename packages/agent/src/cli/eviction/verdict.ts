import type { ExplainedRound, PodExplanation, Victim } from "../../eviction/index.ts";
import type { Colour } from "../output.ts";
import { plainText } from "../plain-text.ts";
import { reasonText, secondsOf, timeOf } from "../wording.ts";
import { causeOf, endingText, exitTexts, isOurs } from "./pod-ending-text.ts";

type Round = PodExplanation["rounds"][number];

/** The summary of what happened to a pod, in a few sentences. */
export interface Verdict {
  text: string;
  colour: Colour;
}

/**
 * What happened to the pod, and why: its last selection by Nodekeeper; else how it was deleted or ended; else why it was
 * not evicted when it was last requested.
 */
export function verdictOf(explanation: PodExplanation): Verdict {
  const { rounds, steps, history } = explanation;
  const chosen = rounds.findLast((round) => round.victim !== null);
  if (!chosen?.victim) return notSelected(explanation);
  const why = askText(chosen.victim);
  const at = `${timeOf(chosen.at)} (round ${chosen.id})`;
  const outcome = rounds.findLast((round) => round.id > chosen.id && round.outcome !== null)?.outcome;
  const last = steps.at(-1);
  if (outcome?.result === "gone" && outcome.sent !== false) {
    const later = last && last.at > chosen.at ? `, pod deleted after ${secondsOf(last.at - chosen.at)}` : "";
    const exits = history ? exitTexts(history).map((text) => ` ${text}`) : [];
    return { colour: "red", text: plainText(`Evicted at ${at}${later}: ${why}.${exits.join("")}`, 650) };
  }
  const but =
    outcome?.result === "overdue"
      ? `Evicted at ${at}, but ${outcome.message}`
      : outcome?.result === "gone"
        ? `Selected at ${at}, but deleted before its eviction was sent`
        : outcome?.result === "failed"
          ? `Selected at ${at} but not evicted: ${outcome.message}`
          : outcome
            ? `Selected at ${at}, withdrawn before its eviction was accepted: ${outcome.message}`
            : `Its eviction started at ${at} and has not ended${last ? `; last: ${last.message}` : ""}`;
  // The pod's end is attributed to an eviction that was sent, or may have been.
  const since = history ? endingText(history, isOurs(explanation)) : "";
  return { colour: "yellow", text: plainText(`${but}. ${capitalized(why)}.${since && ` ${since}`}`, 650) };
}

function capitalized(text: string): string {
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}`;
}

function askText({ plugin, kind, reason }: Pick<Victim, "plugin" | "kind" | "reason">): string {
  return `${kind === "forced" ? `requested by ${plugin}` : `soft eviction requested by ${plugin}`}: ${reason}`;
}

function notSelected({ rounds, history }: PodExplanation): Verdict {
  const ending = history ? endingText(history) : "";
  const hasEnded = history !== null && (history.leftAt !== null || causeOf(history.ending) !== undefined);
  if (hasEnded) {
    const asked = rounds.findLast(
      ({ refusals, dryRunVictim }) => refusals.length > 0 || dryRunVictim !== null,
    );
    const before = asked ? ` Before that, Nodekeeper did not evict it: ${whyNot(asked)}.` : "";
    return { colour: "yellow", text: plainText(`${ending}${before}`, 650) };
  }
  const text = `Not evicted: ${whyNot(rounds.at(-1))}.${ending && ` ${ending}`}`;
  return { colour: "green", text: plainText(text, 650) };
}

function whyNot(round: ExplainedRound | Round | undefined): string {
  if (!round) return "no plugin requested it";
  const { dryRunVictim, withdrawals, refusals, exclusion, place, thresholds } = round;
  if (dryRunVictim) return `${askText(dryRunVictim)}; the plugin is in dry run`;
  const [withdrawal] = withdrawals;
  if (withdrawal) return `it was selected, but ${withdrawal.reason}`;
  const [refusal] = refusals;
  const who = refusal ? `${refusal.plugin} requested it, but ` : "";
  if (exclusion) return `${who}${reasonText(exclusion.reason, exclusion.detail)}`;
  if (refusal) return `${who}${reasonText(refusal.reason, refusal.message)}`;
  const isPressed = thresholds.some(({ confirmed }) => confirmed);
  return `${place?.why ?? "no plugin requested it"}${isPressed ? ", though a threshold was met" : ""}`;
}
