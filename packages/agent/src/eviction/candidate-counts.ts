import {
  eligibilityOf,
  type QosClass,
  type QosLevel,
  type RoundInput,
  selectCandidates,
} from "@nodekeeper/api/decide";
import type { ApiAnswers } from "@nodekeeper/api/openapi";
import { reasonText } from "@nodekeeper/api/wording";

/** The input from which a round determines which pods can be evicted. `now` is in wall milliseconds. */
type RoundView = Pick<RoundInput, "pods" | "nodeName" | "policy" | "state" | "now">;

/** The pods of this node by QoS, and how many of them can be evicted now. */
export type CandidateCounts = ApiAnswers["eviction/candidates"];

/** Counts the pods as a round would at `now`. Pure. */
export function countCandidates({ pods, nodeName, policy, state, now }: RoundView): CandidateCounts {
  const { candidates, exclusions, eligible, ineligible } = splitPods({ pods, nodeName, policy, state, now });
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

/** The pods of this node, and whether each can be evicted now. */
export type EligiblePods = ApiAnswers["eviction/eligibility"];

/** Returns the pods, and whether each can be evicted, as a round would decide at `now`. Pure. */
export function listEligibility(view: RoundView): EligiblePods {
  const { exclusions, ineligible } = splitPods(view);
  const never = new Map(exclusions.map(({ uid, reason, detail }) => [uid, reasonText(reason, detail)]));
  const later = new Map(ineligible.map((one) => [one.uid, one]));
  const nameOf = ({ namespace, name }: { namespace: string; name: string }) => `${namespace}/${name}`;
  return [...view.pods]
    .sort((a, b) => (nameOf(a) < nameOf(b) ? -1 : 1))
    .map(({ labels: _labels, annotationKeys: _keys, ...pod }) => {
      const excluded = never.get(pod.uid);
      if (excluded !== undefined) return { pod, eviction: "never", reason: excluded };
      const one = later.get(pod.uid);
      if (!one) return { pod, eviction: "now" };
      const until = one.until === null ? {} : { until: one.until };
      return { pod, eviction: "later", reason: one.message, ...until };
    });
}

function splitPods({ pods, nodeName, policy, state, now }: RoundView) {
  const { candidates, exclusions } = selectCandidates(pods, nodeName, policy.skip);
  const paused = state.paused.filter(({ until }) => now < until);
  const underWay = {
    ...state,
    paused,
    failedBefore: [],
    resumed: [],
    holding: [],
    deleted: new Set<string>(),
    stopped: new Set<string>(),
    sentBefore: new Set<string>(),
  };
  return { candidates, exclusions, ...eligibilityOf(candidates, underWay, policy, now) };
}

function countBy<T, K extends string>(
  items: readonly T[],
  keyOf: (item: T) => K,
): Partial<Record<K, number>> {
  const counts = new Map<K, number>();
  for (const item of items) counts.set(keyOf(item), (counts.get(keyOf(item)) ?? 0) + 1);
  return Object.fromEntries([...counts].sort(([a], [b]) => (a < b ? -1 : 1))) as Partial<Record<K, number>>;
}
