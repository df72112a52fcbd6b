import { answerOf } from "../decide/answers.ts";
import type {
  CallFailure,
  MetThreshold,
  RankedCandidate,
  Refusal,
  Victim,
  Withdrawal,
} from "../decide/decision.ts";
import type { EvictionPod, PodReference } from "../decide/pods.ts";
import { isDryRun } from "../decide/policy.ts";
import type { EvictionOutcome } from "../decide/round.ts";
import type { EvictionStep } from "../parts.ts";
import type { NodePod } from "./pod-history.ts";
import type { RoundRecord } from "./round-record.ts";

/** Where one candidate stood in a round, beside the pod that is explained. */
export type Neighbour = Pick<
  RankedCandidate,
  "uid" | "namespace" | "name" | "rank" | "outcome" | "why" | "qosLevel" | "qosClass" | "priority" | "scope"
>;

/** One threshold that was met, with its plugin's mode. */
export interface ExplainedThreshold extends MetThreshold {
  dryRun: boolean;
  /** How many pods the plugin named when it was asked for its top ones; null where it was not asked or failed. */
  named: number | null;
}

/** What one round meant for a pod. */
export interface ExplainedRound {
  id: number;
  /** Wall milliseconds. */
  at: number;
  /** As the round saw it; null where it was not there any more. */
  pod: EvictionPod | null;
  thresholds: ExplainedThreshold[];
  /** As a victim of the round, with all who asked; null where it was none. */
  victim: Victim | null;
  /** The same for who would have gone but for dry run. */
  dryRunVictim: Victim | null;
  /** Its own place; null where it was no candidate. */
  place: Neighbour | null;
  /** Why it was no candidate; null where it was one. */
  exclusion: { reason: string; detail: string } | null;
  refusals: Refusal[];
  /** How many candidates there were, and those anybody asked for: at most 20, the least important first. */
  candidates: number;
  others: Neighbour[];
  withdrawals: Withdrawal[];
  outcome: EvictionOutcome | null;
  failures: CallFailure[];
}

/** Everything the records know of one pod, as a page for a person needs it. Plain JSON. */
export interface PodExplanation extends PodReference {
  /** Rounds that were about the pod, oldest first; of equal ones in a row the first, with how often it came. */
  rounds: (ExplainedRound & { times: number; until: number })[];
  /** How many such rounds there were besides, older than the newest or without consequence. */
  omitted: number;
  steps: EvictionStep[];
  /** What happened to it on the node, whoever caused it; null where that is not recorded. */
  history: NodePod | null;
  /** Starts of its containers and its sandbox, oldest first. */
  events: EvictionStep[];
  /** UIDs of other recorded pods of this name, the newest first; at most 10. Empty where one UID was asked for. */
  otherUids: string[];
  /** Wall milliseconds of the oldest recorded round of all; null where there is none. */
  recordsSince: number | null;
}

const MOST_OTHERS = 20;
// A page for a person; and what flaps for days must not fill the answer.
const MOST_EXPLAINED_ROUNDS = 50;

/** An explanation that says nothing yet. */
export function emptyExplanation({ uid, namespace, name }: PodReference): PodExplanation {
  return {
    ...{ uid, namespace, name, rounds: [], omitted: 0, steps: [] },
    ...{ history: null, events: [], otherUids: [], recordsSince: null },
  };
}

/** Adds what one more round, a later one, meant for the pod. */
export function addToExplanation(explanation: PodExplanation, record: RoundRecord): void {
  const { uid, rounds } = explanation;
  const round = explainRound(uid, record);
  const last = rounds.at(-1);
  if (last && gist(last) === gist(round)) {
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

/** What one round meant for the pod with this UID. Pure. */
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
    candidates: decision.ranking.length,
    others: asked.slice(0, MOST_OTHERS).map(neighbour),
    withdrawals: decision.withdrawals.filter(isIt),
    outcome: input.outcomes.find(isIt) ?? null,
    failures: decision.failures,
  };
}

function neighbour({ kind: _kind, ...place }: RankedCandidate): Neighbour {
  return place;
}

// A pod that is refused for hours for one reason is one line, not thousands.
function gist({ victim, dryRunVictim, outcome, withdrawals, ...round }: ExplainedRound): string {
  const { place, exclusion, refusals, id } = round;
  if (victim || outcome || withdrawals.length > 0) return `round ${id}`;
  const met = round.thresholds.map(({ plugin, scope, metType, confirmed, held }) => [
    plugin,
    scope,
    metType,
    confirmed,
    held?.reason,
  ]);
  const refused = refusals.map(({ plugin, reason }) => [plugin, reason]);
  return JSON.stringify([place?.outcome, exclusion?.reason, refused, met, dryRunVictim?.plugin]);
}
