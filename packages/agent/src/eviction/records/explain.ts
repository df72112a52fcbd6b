import { answerOf } from "../decide/answers.ts";
import type {
  CallFailure,
  MetThreshold,
  RankedCandidate,
  Refusal,
  Victim,
  Withdrawal,
} from "../decide/decision.ts";
import { compareOutcomes, type EvictionOutcome } from "../decide/outcome.ts";
import type { EvictionPod, PodReference } from "../decide/pods.ts";
import { isDryRun } from "../decide/policy.ts";
import type { RankKeyName } from "../decide/rank.ts";
import type { EvictionStep } from "../parts.ts";
import type { RoundRecord } from "../replay/round-record.ts";
import { noCoverage, type RecordCoverage } from "./coverage.ts";
import type { NodePod } from "./pod-history.ts";

/** Rank and outcome of another candidate in the same round as the explained pod. */
export type Neighbour = Pick<
  RankedCandidate,
  "uid" | "namespace" | "name" | "rank" | "outcome" | "why" | "qosLevel" | "qosClass" | "priority" | "scope"
>;

/** A threshold that was met, with its plugin's mode. */
export interface ExplainedThreshold extends MetThreshold {
  dryRun: boolean;
  /** The number of pods in the GetTopEvictionPods answer; null where the call was not made or failed. */
  named: number | null;
}

/** One round from the point of view of a pod. */
export interface ExplainedRound {
  id: number;
  /** Wall milliseconds. */
  at: number;
  /** As observed by the round; null where it was already deleted. */
  pod: EvictionPod | null;
  thresholds: ExplainedThreshold[];
  /** Set where the pod was a victim of the round. */
  victim: Victim | null;
  /** Set where it would have been a victim if its plugin were not in dry run. */
  dryRunVictim: Victim | null;
  /** Its own rank; null where it was not a candidate. */
  place: Neighbour | null;
  /** Why it was not a candidate; null where it was one. */
  exclusion: { reason: string; detail: string } | null;
  refusals: Refusal[];
  /** The keys of the round's policy, by which candidates are ranked. */
  ranking: RankKeyName[];
  /** The number of candidates. */
  candidates: number;
  /** Other candidates that a plugin requested, in rank order: at most 20. */
  others: Neighbour[];
  withdrawals: Withdrawal[];
  outcome: EvictionOutcome | null;
  failures: CallFailure[];
}

/** All that is recorded about one pod, in the order of the `explain pod` page. Plain JSON. */
export interface PodExplanation extends PodReference {
  /** Rounds that concern the pod, oldest first. Equal rounds in a row are one entry with their number. */
  rounds: (ExplainedRound & { times: number; until: number })[];
  /** The number of rounds left out because of the bound of 50: those in which nothing was decided first. */
  omitted: number;
  steps: EvictionStep[];
  /** Its history on the node, whichever client or component caused it; null where none is recorded. */
  history: NodePod | null;
  /** Starts of its containers and its sandbox, oldest first. */
  events: EvictionStep[];
  /** UIDs of other recorded pods of this name, newest first; at most 10. Empty for a query by UID. */
  otherUids: string[];
  /** Wall milliseconds of the oldest record; null where there is none. */
  recordsSince: number | null;
  /** From when and where records of consequence are complete: only there the absence of a record proves anything. */
  coverage: RecordCoverage;
}

const MOST_OTHERS = 20;
// Bounds the answer for a pod whose rounds alternate for days.
const MOST_EXPLAINED_ROUNDS = 50;

/** An explanation without rounds. */
export function emptyExplanation({ uid, namespace, name }: PodReference): PodExplanation {
  return {
    ...{ uid, namespace, name, rounds: [], omitted: 0, steps: [] },
    ...{ history: null, events: [], otherUids: [], recordsSince: null },
    coverage: noCoverage,
  };
}

/** Adds a round to an explanation. Add rounds in their order. */
export function addToExplanation(explanation: PodExplanation, record: RoundRecord): void {
  const { uid, rounds } = explanation;
  const round = explainRound(uid, record);
  const last = rounds.at(-1);
  if (last && comparisonKey(last) === comparisonKey(round)) {
    last.times++;
    last.until = round.at;
    return;
  }
  rounds.push({ ...round, times: 1, until: round.at });
  if (rounds.length <= MOST_EXPLAINED_ROUNDS) return;
  const least = rounds.findIndex(({ victim, outcome }) => victim === null && outcome === null);
  rounds.splice(Math.max(least, 0), 1);
  explanation.omitted++;
}

/** Explains one round for the pod with this UID. Pure. */
export function explainRound(uid: string, { id, input, decision }: RoundRecord): ExplainedRound {
  const isIt = (pod: { uid: string }) => pod.uid === uid;
  const exclusion = decision.exclusions.find(isIt);
  const place = decision.ranking.find(isIt);
  const asked = decision.ranking.filter(
    (one) => one.outcome !== "notAsked" && one.outcome !== "ineligible" && !isIt(one),
  );
  const tops = new Map(input.tops.map(({ plugin, top }) => [plugin, answerOf(top)]));
  return {
    id,
    at: input.now,
    pod: input.pods.find(isIt) ?? null,
    thresholds: decision.thresholds.map((met) => ({
      ...met,
      dryRun: isDryRun(input.policy, met.plugin),
      named: tops.get(met.plugin)?.pods.length ?? null,
    })),
    victim: decision.victims.find(isIt) ?? null,
    dryRunVictim: decision.dryRunVictims.find(isIt) ?? null,
    place: place ? neighbour(place) : null,
    exclusion: exclusion ? { reason: exclusion.reason, detail: exclusion.detail } : null,
    refusals: decision.refusals.filter(isIt),
    ranking: input.policy.ranking,
    candidates: decision.ranking.length,
    others: asked.slice(0, MOST_OTHERS).map(neighbour),
    withdrawals: decision.withdrawals.filter(isIt),
    outcome: input.outcomes.filter(isIt).sort(compareOutcomes).at(-1) ?? null,
    failures: decision.failures,
  };
}

function neighbour({ kind: _kind, ...place }: RankedCandidate): Neighbour {
  return place;
}

// Rounds with equal keys are one entry: a pod that is refused for hours for one reason is one line.
function comparisonKey({ victim, dryRunVictim, outcome, withdrawals, ...round }: ExplainedRound): string {
  const { place, exclusion, refusals, id } = round;
  if (victim || outcome || withdrawals.length > 0) return `round ${id}`;
  const met = round.thresholds.map(({ plugin, scope, metType, confirmed, held, unserved }) => [
    plugin,
    scope,
    metType,
    confirmed,
    held?.reason,
    unserved?.reason,
  ]);
  const refused = refusals.map(({ plugin, reason }) => [plugin, reason]);
  return JSON.stringify([place?.outcome, exclusion?.reason, refused, met, dryRunVictim?.plugin]);
}
