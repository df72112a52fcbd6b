import type { Victim } from "../decide/decision.ts";
import type { ExplainedRound, PodExplanation } from "../records/explain.ts";
import { causeOf, endingText, exitTexts, isOurs } from "./ending.ts";
import { reasonText, secondsOf, timeOf } from "./text.ts";

/** The summary of what happened to a pod, in a few sentences. Names and reasons in it are as plugins and pods have them. */
export interface Verdict {
  text: string;
  /** `evicted`: by Nodekeeper. `kept`: it runs. `other`: it ended otherwise, or its eviction has not ended. */
  kind: "evicted" | "kept" | "other";
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
  if (outcome?.result === "terminated" && outcome.sent !== false) {
    const later = last && last.at > chosen.at ? `, pod deleted after ${secondsOf(last.at - chosen.at)}` : "";
    const exits = history ? exitTexts(history).map((text) => ` ${text}`) : [];
    return { kind: "evicted", text: `Evicted at ${at}${later}: ${why}.${exits.join("")}` };
  }
  const but =
    outcome?.result === "overdue"
      ? `Evicted at ${at}, but ${outcome.message}`
      : outcome?.result === "terminated"
        ? `Selected at ${at}, but deleted before its eviction was sent`
        : outcome?.result === "failed"
          ? `Selected at ${at} but not evicted: ${outcome.message}`
          : outcome
            ? `Selected at ${at}, withdrawn before its eviction was accepted: ${outcome.message}`
            : `Its eviction started at ${at} and has not ended${last ? `; last: ${last.message}` : ""}`;
  // The pod's end is attributed to an eviction that was sent, or may have been.
  const since = history ? endingText(history, isOurs(explanation)) : "";
  return { kind: "other", text: `${but}. ${capitalized(why)}.${since && ` ${since}`}` };
}

function capitalized(text: string): string {
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}`;
}

function askText({
  plugin,
  kind,
  reason,
  asks,
}: Pick<Victim, "plugin" | "kind" | "reason" | "asks">): string {
  const [first] = asks;
  // Records of earlier versions have the threshold alone as the reason.
  if (first?.selectedBy === "ranking")
    return first.fallback ? reason : `selected by Nodekeeper's ranking, for ${plugin}: ${reason}`;
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
    return { kind: "other", text: `${ending}${before}` };
  }
  return { kind: "kept", text: `Not evicted: ${whyNot(rounds.at(-1))}.${ending && ` ${ending}`}` };
}

function whyNot(round: ExplainedRound | undefined): string {
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
