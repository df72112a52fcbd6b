import {
  eligibilityOf,
  type QosClass,
  type QosLevel,
  type RoundInput,
  selectCandidates,
} from "@nodekeeper/api/decide";
import type { ApiAnswers } from "@nodekeeper/api/openapi";

/** What a round decides about. */
type RoundView = Pick<RoundInput, "pods" | "nodeName" | "policy" | "state" | "now">;

/** The pods of this node by QoS, and how many of them can be evicted now. */
export type CandidateCounts = ApiAnswers["eviction/candidates"];

/** Counts the pods as a round would at `now`. Pure. */
export function countCandidates({ pods, nodeName, policy, state, now }: RoundView): CandidateCounts {
  const { candidates, exclusions } = selectCandidates(pods, nodeName, policy.skip);
  const paused = state.paused.filter(({ until }) => now < until);
  const underWay = {
    ...state,
    paused,
    failedBefore: [],
    resumed: [],
    holding: [],
    deleted: new Set<string>(),
  };
  const { eligible, ineligible } = eligibilityOf(candidates, underWay, policy, now);
  const kinds = countBy(pods, ({ qosLevel, qosClass }) => `${qosLevel} ${qosClass}`);
  const mix = Object.entries(kinds).map(([kind, count]) => {
    const [qosLevel, qosClass] = kind.split(" ") as [QosLevel, QosClass];
    return { qosLevel, qosClass, pods: count };
  });
  return {
    pods: pods.length,
    mix,
    candidates: candidates.length,
    eligible: eligible.length,
    ineligible: countBy(ineligible, ({ reason }) => reason),
    excluded: countBy(exclusions, ({ reason }) => reason),
  };
}

function countBy<T, K extends string>(
  items: readonly T[],
  keyOf: (item: T) => K,
): Partial<Record<K, number>> {
  const counts = new Map<K, number>();
  for (const item of items) counts.set(keyOf(item), (counts.get(keyOf(item)) ?? 0) + 1);
  return Object.fromEntries([...counts].sort(([a], [b]) => (a < b ? -1 : 1))) as Partial<Record<K, number>>;
}
