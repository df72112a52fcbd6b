import { type EvictionOutcome, isOfSelection } from "../decide/index.ts";
import type { ExplainedRound, PodExplanation } from "../records/index.ts";
import { SECOND_MS, timeOf } from "./time.ts";

/** The last recorded eviction of a pod by Nodekeeper. */
export interface LastEviction {
  /** The round that selected the pod. Undefined if it is not recorded. */
  chosen: (ExplainedRound & { victim: NonNullable<ExplainedRound["victim"]> }) | undefined;
  /** How it ended, or that it is overdue. Undefined if no outcome is recorded. */
  outcome: EvictionOutcome | undefined;
}

/** Whether Nodekeeper terminated a pod. `unknown` if evidence is missing, with the reason if it is known. */
export interface Attribution {
  by: "nodekeeper" | "other" | "unknown";
  why: string;
}

/**
 * Returns the last selection of the pod and its outcome, as far as they are recorded. If an eviction stopped the pod's
 * containers, or may have, a later selection of the ended pod is skipped.
 */
export function lastEvictionOf({ rounds, selectedAt }: PodExplanation): LastEviction {
  const stop = lastStopOf(rounds);
  const chosen = rounds.findLast(
    (round): round is typeof round & { victim: object } =>
      round.victim !== null && (!stop || round.id < stop.id),
  );
  if (stop) {
    const { outcome } = stop;
    return { chosen: chosen && isOfSelection(outcome, chosen.at) ? chosen : undefined, outcome };
  }
  const after = rounds.findLast(({ id, outcome }) => outcome !== null && id > (chosen?.id ?? 0));
  const recorded = after?.outcome ?? undefined;
  // An eviction in progress is the last one. Neither its selection nor its outcome may be on record.
  const isEarlier = recorded && selectedAt !== undefined && !isOfSelection(recorded, selectedAt);
  const outcome = isEarlier ? undefined : recorded;
  const isItsOwn = chosen && isOfSelection(outcome ?? { selectedAt }, chosen.at);
  return { chosen: isItsOwn ? chosen : undefined, outcome };
}

// Returns the eviction that stopped the pod's containers, or may have, if the pod had already ended when it was last
// selected. Undefined otherwise.
function lastStopOf(rounds: PodExplanation["rounds"]): { id: number; outcome: EvictionOutcome } | undefined {
  const ends = rounds.flatMap(({ id, outcome }) => (outcome === null ? [] : [{ id, outcome }]));
  if (ends.at(-1)?.outcome.result !== "superseded") return undefined;
  return ends.findLast(
    ({ outcome: { result, stopsContainers } }) =>
      (result === "terminated" || result === "unknown") && stopsContainers === true,
  );
}

/**
 * Returns whether Nodekeeper terminated the pod or is terminating it.
 *
 * 1. `nodekeeper` only if a request of the agent is recorded as accepted. Stopping containers does not end a pod.
 * 2. `other` only if no request of the agent may have ended the pod, and the records cover its end. The coverage is
 *    not checked if the last outcome is `superseded`, or `terminated` with `sent` false, or if no time of the end is
 *    known.
 */
export function attributionOf(explanation: PodExplanation): Attribution {
  const { chosen, outcome } = lastEvictionOf(explanation);
  // Of any of its evictions: a request without a response may arrive after the next one has ended.
  const wasSent = explanation.rounds.some(({ outcome }) => outcome !== null && mayFollow(outcome));
  const perhaps = wasSent ? unknown("a request to evict it was sent before") : undefined;
  const isOpen = chosen !== undefined || explanation.selectedAt !== undefined;
  if (outcome === undefined) {
    if (isOpen) return unknown();
    const hasSteps = explanation.steps.length > 0;
    return hasSteps
      ? unknown("steps of an eviction are recorded, but not how it ended")
      : fromCoverage(explanation);
  }
  switch (outcome.result) {
    case "terminated":
      // The pod stays: whoever ended it did so later, or at the same time.
      if (outcome.stopsContainers) return perhaps ?? fromCoverage(explanation);
      if (outcome.sent !== false) return { by: "nodekeeper", why: "" };
      return perhaps ?? { by: "other", why: "" };
    case "overdue":
      return outcome.sent === true ? { by: "nodekeeper", why: "" } : unknown();
    case "superseded":
      return perhaps ?? { by: "other", why: "" };
    case "unknown":
      // Whoever deleted the pod did so later: stopping containers deletes none.
      if (outcome.stopsContainers && explanation.history?.leftAt != null)
        return perhaps ?? fromCoverage(explanation);
      // The verdict states the outcome only with the round that selected the pod.
      return unknown(chosen ? "" : outcome.message);
    case "failed":
    case "withdrawn":
      return perhaps ?? fromCoverage(explanation);
  }
}

/**
 * Returns why records do not cover an ending at `to`, wall-clock milliseconds. Undefined if they do. Outcomes are
 * recorded after the end, so the oldest record may be newer than `from`.
 */
export function missingRecords(
  { coverage: { oldest, gaps } }: Pick<PodExplanation, "coverage">,
  from: number,
  to: number,
): string | undefined {
  if (oldest === null) return "no records of that time are kept";
  if (to < oldest) return `the records of that time are no longer kept (oldest: ${timeOf(oldest)})`;
  const gap = gaps.find((one) => one.from <= to && from <= one.to);
  return gap && `records are missing between ${timeOf(gap.from)} and ${timeOf(gap.to)}: ${gap.why}`;
}

// Returns whether a request of an ended eviction, or of an earlier one, may have terminated the pod later. A request of
// an eviction that succeeded cannot. Neither can a request to stop containers that have exited.
function mayFollow({ result, sent, sentBefore, stopsContainers }: EvictionOutcome): boolean {
  if (sentBefore === true) return true;
  const haveExited = result === "terminated" || (result === "unknown" && stopsContainers);
  return sent === true && !haveExited;
}

function unknown(why = ""): Attribution {
  return { by: "unknown", why };
}

// Maximum time between sending a request and its execution: kube-apiserver's default --request-timeout.
const LATE_MS = 60_000;

// Returns `other` if the records cover the pod's termination, otherwise `unknown` with the reason. They must cover the
// time from the deletion request until the pod left the node, and the minute before, but not the time before the pod
// started: a request that was sent during a gap may have been executed after it.
function fromCoverage(explanation: PodExplanation): Attribution {
  const { history } = explanation;
  if (history === null) return { by: "other", why: "" };
  const { ending, leftAt, lastKnownAt, pod } = history;
  const isTime = (time: number | null | undefined) => time != null;
  const stated = [ending.deletion?.requestedAt, ending.disruption?.at].filter(isTime);
  const seen = [lastKnownAt, leftAt].filter(isTime);
  if (stated.length + seen.length === 0) return { by: "other", why: "" };
  const from = Math.min(...stated.map((time) => Math.floor(time / SECOND_MS) * SECOND_MS), ...seen);
  const sentFrom = Math.min(from, Math.max(from - LATE_MS, pod.startTime ?? 0));
  const why = missingRecords(explanation, sentFrom, Math.max(...stated, ...seen));
  return why === undefined ? { by: "other", why: "" } : unknown(why);
}
