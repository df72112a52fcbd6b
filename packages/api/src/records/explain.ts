import {
  answerOf,
  compareOutcomes,
  isDryRun,
  type PodReference,
  type RankedCandidate,
} from "../decide/index.ts";
import type { explainedRound, podExplanation, ValueOf } from "../openapi/index.ts";
import { noCoverage } from "./coverage.ts";
import type { RoundRecord } from "./round-record.ts";

/** One round, from the point of view of a pod. */
export type ExplainedRound = ValueOf<typeof explainedRound>;

/** A threshold that was met, and whether its plugin was in dry run. */
export type ExplainedThreshold = ExplainedRound["thresholds"][number];

/** Rank and outcome of another candidate in the same round as the explained pod. */
export type Neighbour = ExplainedRound["others"][number];

/** All records about one pod, in the order of the `explain pod` page. */
export type PodExplanation = ValueOf<typeof podExplanation>;

const MOST_OTHERS = 20;
// Bounds the result for a pod whose rounds alternate for days.
const MOST_EXPLAINED_ROUNDS = 50;

/** Returns an explanation without rounds. */
export function emptyExplanation({ uid, namespace, name }: PodReference): PodExplanation {
  return {
    ...{ uid, namespace, name, rounds: [], omitted: 0, steps: [] },
    ...{ history: null, events: [], otherUids: [], recordsSince: null },
    coverage: noCoverage,
  };
}

/** Adds a round to an explanation. Add rounds in their order. */
export function addToExplanation(explanation: PodExplanation, record: RoundRecord): void {
  addRoundToExplanation(explanation, explainRound(explanation.uid, record));
}

/** Like `addToExplanation`, for a round that is explained for the pod. */
export function addRoundToExplanation(explanation: PodExplanation, round: ExplainedRound): void {
  const { rounds } = explanation;
  const last = rounds.at(-1);
  if (last && comparisonKey(last) === comparisonKey(round)) {
    last.times++;
    last.until = round.at;
    return;
  }
  rounds.push({ ...round, times: 1, until: round.at });
  if (rounds.length <= MOST_EXPLAINED_ROUNDS) return;
  const least = rounds.findIndex(({ victim, outcome }) => victim === null && outcome === null);
  const [dropped] = rounds.splice(Math.max(least, 0), 1);
  explanation.omitted += dropped!.times;
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

// Consecutive rounds with equal keys are one entry: a pod that is refused for hours for the same reason takes one line.
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
