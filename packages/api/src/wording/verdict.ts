import { type EvictionOutcome, isUncertain, type Victim } from "../decide/index.ts";
import type { ExplainedRound, PodExplanation } from "../records/index.ts";
import { type Attribution, attributionOf, lastEvictionOf, missingRecords } from "./attribution.ts";
import { causeOf, endingText, exitTexts } from "./ending.ts";
import { outcomeText, reasonText, secondsOf } from "./text.ts";
import { SECOND_MS, timeOf } from "./time.ts";

/** Summarizes what happened to a pod, in a few sentences. Names and reasons from plugins and pods are not escaped. */
export interface Verdict {
  text: string;
  /**
   * `evicted`: by Nodekeeper. `kept`: not evicted, and not known to have ended. `other`: all other cases, for example
   * an eviction in progress, a pod that ended otherwise, or missing records.
   */
  kind: "evicted" | "kept" | "other";
}

/**
 * Returns what happened to the pod, and why: its last selection by Nodekeeper; otherwise how it was deleted or ended;
 * otherwise why it was not evicted when last requested. Each sentence states what is recorded, or what is missing.
 */
export function verdictOf(explanation: PodExplanation): Verdict {
  const { history } = explanation;
  const last = lastEvictionOf(explanation);
  const { chosen, outcome } = last;
  if (!chosen) {
    const says = outcome && (isEviction(outcome) || !hasEnded(explanation));
    if (says) return withoutSelection(outcome, explanation);
    return explanation.selectedAt === undefined
      ? notSelected(explanation)
      : openWithoutSelection(explanation);
  }
  const why = askText(chosen.victim);
  const round = `(round ${chosen.id})`;
  if (outcome && isEviction(outcome)) {
    const { acceptedAt, endedAt, message } = outcome;
    const time = acceptedAt === undefined || endedAt === undefined ? undefined : endedAt - acceptedAt;
    const after = time === undefined ? "" : ` after ${secondsOf(time)}`;
    const later = acceptedAt === undefined ? "" : `, ${message}${after}`;
    const since = history ? sinceText(history, outcome, explanation) : "";
    const at = `${timeOf(acceptedAt ?? chosen.at)} ${round}`;
    return { kind: "evicted", text: `Evicted at ${at}${later}: ${why}.${since && ` ${since}`}` };
  }
  const selected = `${timeOf(chosen.at)} ${round}`;
  const attribution = attributionOf(explanation);
  const what = outcome
    ? outcomeSentence(outcome, selected, round, isNotKnown(outcome, attribution, history))
    : openSentence(explanation, selected);
  const since = history ? endingText(history, attribution) : "";
  return { kind: "other", text: `${what}. ${capitalized(why)}.${since && ` ${since}`}` };
}

// A pod whose containers were stopped runs on, until something else ends it.
function sinceText(
  history: NonNullable<PodExplanation["history"]>,
  { stopsContainers }: EvictionOutcome,
  explanation: PodExplanation,
): string {
  return stopsContainers ? endingText(history, attributionOf(explanation)) : exitTexts(history).join(" ");
}

// The round that selected the pod was not recorded, for example while the disk was full.
function withoutSelection(outcome: EvictionOutcome, explanation: PodExplanation): Verdict {
  const { history } = explanation;
  const { acceptedAt, message } = outcome;
  const isEvicted = isEviction(outcome) && acceptedAt !== undefined;
  const attribution = attributionOf(explanation);
  const isKept =
    givenUp.has(outcome.result) && history !== null && !isNotKnown(outcome, attribution, history);
  const text = isEvicted
    ? `Evicted at ${timeOf(acceptedAt)}: ${message}`
    : isKept
      ? `Not evicted: ${outcome.result === "withdrawn" ? "its eviction was withdrawn: " : ""}${message}`
      : capitalized(outcomeText(outcome));
  const since = history ? endingText(history, attribution) : "";
  return {
    kind: isEvicted ? "evicted" : isKept ? "kept" : "other",
    text: `${text}. ${NO_ROUND}${since && ` ${since}`}`,
  };
}

// The eviction is in progress, by the agent's state.
function openWithoutSelection(explanation: PodExplanation): Verdict {
  const { history } = explanation;
  const hasLeft = history !== null && history.leftAt !== null;
  const text = hasLeft ? "No outcome of its eviction is recorded" : "Its eviction has not ended";
  const since = history ? endingText(history, attributionOf(explanation)) : "";
  return { kind: "other", text: `${text}. ${NO_ROUND}${since && ` ${since}`}` };
}

const NO_ROUND = "The round that selected it is not recorded.";
const givenUp: ReadonlySet<EvictionOutcome["result"]> = new Set(["failed", "withdrawn"]);

// Returns whether the agent's request was executed: the pod was deleted, or its containers were stopped.
function isEviction({ result, sent }: EvictionOutcome): boolean {
  return result === "terminated" && sent !== false;
}

// Returns whether the pod was deleted or is terminating. If not, it was not evicted, regardless of the result of the
// requests, but its containers may have been stopped.
function hasLeft(history: PodExplanation["history"]): boolean {
  return history !== null && (history.leftAt !== null || history.ending.deletion !== null);
}

function isNotKnown(
  outcome: EvictionOutcome,
  { by }: Attribution,
  history: PodExplanation["history"],
): boolean {
  const isEnd = outcome.result === "terminated" || outcome.result === "superseded";
  return isEnd ? by === "unknown" : isUncertain(outcome) && (outcome.stopsContainers || hasLeft(history));
}

function outcomeSentence(
  outcome: EvictionOutcome,
  selected: string,
  round: string,
  isUnknown: boolean,
): string {
  const { result, message, acceptedAt } = outcome;
  if (isUnknown) return `Selected at ${selected}; whether Nodekeeper evicted it is not known: ${message}`;
  switch (result) {
    case "overdue":
      return `Evicted at ${acceptedAt === undefined ? selected : `${timeOf(acceptedAt)} ${round}`}, but ${message}`;
    case "terminated":
    case "superseded":
      return `Selected at ${selected} but not evicted by Nodekeeper: ${message}`;
    case "unknown":
      return `Selected at ${selected}; whether Nodekeeper evicted it is not known: ${message}`;
    case "failed":
      return `Selected at ${selected} but not evicted: ${message}`;
    case "withdrawn":
      return isUncertain(outcome)
        ? `Selected at ${selected}, withdrawn: ${message}`
        : `Selected at ${selected}, withdrawn before its eviction was accepted: ${message}`;
  }
}

// Describes an eviction without a recorded outcome. It is in progress while the pod exists, unless the agent's state no
// longer contains it: then the round with its outcome was not recorded.
function openSentence(explanation: PodExplanation, selected: string): string {
  const { history, steps } = explanation;
  const step = steps.at(-1);
  const last = step ? `; last: ${step.message}` : "";
  const leftAt = history?.leftAt;
  if (leftAt == null && explanation.inProgress !== false)
    return `Its eviction started at ${selected} and has not ended${last}`;
  const missing = leftAt == null ? undefined : missingRecords(explanation, leftAt, leftAt);
  return `Selected at ${selected}; no outcome of its eviction is recorded${missing ? `: ${missing}` : ""}${last}`;
}

function capitalized(text: string): string {
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}`;
}

function askText({ plugin, kind, reason, asks }: Victim): string {
  const [first] = asks;
  if (first?.selectedBy === "ranking")
    return first.fallback ? reason : `selected by Nodekeeper's ranking, for ${plugin}: ${reason}`;
  return `${kind === "forced" ? `requested by ${plugin}` : `soft eviction requested by ${plugin}`}: ${reason}`;
}

// Returns whether the pod was deleted, or the cause of its end is known. False for a finished pod that still exists if
// its status gives no cause, and for a pod without a history.
function hasEnded(explanation: PodExplanation): boolean {
  const { history } = explanation;
  if (history === null) return false;
  return history.leftAt !== null || causeOf(history.ending, attributionOf(explanation).by) !== undefined;
}

function notSelected(explanation: PodExplanation): Verdict {
  const { rounds, history } = explanation;
  const attribution = attributionOf(explanation);
  const ending = history ? endingText(history, attribution) : "";
  if (hasEnded(explanation)) {
    const asked = rounds.findLast(
      ({ refusals, dryRunVictim }) => refusals.length > 0 || dryRunVictim !== null,
    );
    const before = asked ? ` Before that, Nodekeeper did not evict it: ${whyNot(asked)}.` : "";
    return { kind: "other", text: `${ending}${before}` };
  }
  const why = whyNot(rounds.at(-1));
  const isRequested = !why.startsWith(NOT_REQUESTED);
  const missing = missingUntilFinished(explanation);
  const texts =
    missing === undefined
      ? [
          isRequested
            ? `Not evicted${gapLimit(explanation)}: ${why}.`
            : `Not evicted: ${why}${recordsLimit(explanation)}.`,
        ]
      : [`Whether Nodekeeper evicted it is not known: ${missing}.`];
  if (missing !== undefined && isRequested) texts.push(`${capitalized(why)}.`);
  if (ending) texts.push(ending);
  return { kind: missing === undefined ? "kept" : "other", text: texts.join(" ") };
}

// Returns why the records may lack an eviction that stopped the containers of a finished pod. Undefined if the records
// are complete, or if the pod has not finished.
function missingUntilFinished(explanation: PodExplanation): string | undefined {
  const { history } = explanation;
  if (history?.ending.phase !== "Failed" && history?.ending.phase !== "Succeeded") return undefined;
  const { exits, seenAt } = history;
  const times = exits.map(({ at }) => at);
  // The outcome of an eviction is recorded after the exits.
  if (times.length > 0 && times.every((at) => at !== null))
    return missingRecords(explanation, seenAt, Math.max(...times) + SECOND_MS);
  return missingRecords(explanation, seenAt, seenAt) ?? missingRecords(explanation, seenAt, Infinity);
}

// Returns a qualification if the records of requests since the pod was first seen are incomplete: only complete records
// prove that there was no request. Empty if they are complete. Exported records do not have all requests (`requests` is
// undefined).
function recordsLimit(explanation: PodExplanation): string {
  const { history, coverage } = explanation;
  const { requests } = coverage;
  if (history === null) return gapLimit(explanation);
  if (requests === undefined) return gapLimit(explanation) || ", as far as records are kept";
  if (history.seenAt < requests) return `, as far as records are kept (oldest: ${timeOf(requests)})`;
  return gapLimit(explanation);
}

// Returns a qualification that names the first gap in the records since the pod was first seen. Empty if there is none.
// An eviction that was not recorded may have stopped the containers of a pod that still exists.
function gapLimit({ rounds, history, coverage }: PodExplanation): string {
  const from = history?.seenAt ?? rounds[0]?.at;
  const gap = from === undefined ? undefined : coverage.gaps.find(({ to }) => to >= from);
  if (!gap) return "";
  return `, as far as records are kept (missing between ${timeOf(gap.from)} and ${timeOf(gap.to)}: ${gap.why})`;
}

const NOT_REQUESTED = "no plugin requested it";

function whyNot(round: ExplainedRound | undefined): string {
  if (!round) return NOT_REQUESTED;
  const { dryRunVictim, withdrawals, refusals, exclusion, place, thresholds } = round;
  if (dryRunVictim) return `${askText(dryRunVictim)}; the plugin is in dry run`;
  const [withdrawal] = withdrawals;
  if (withdrawal) return `it was selected, but ${withdrawal.reason}`;
  const [refusal] = refusals;
  const who = refusal ? `${refusal.plugin} requested it, but ` : "";
  if (exclusion) return `${who}${reasonText(exclusion.reason, exclusion.detail)}`;
  if (refusal) return `${who}${reasonText(refusal.reason, refusal.message)}`;
  const isPressed = thresholds.some(({ confirmed }) => confirmed);
  return `${place?.why ?? NOT_REQUESTED}${isPressed ? ", though a threshold was met" : ""}`;
}
