import { type EvictionPolicy, type EvictionState, mergeConditions, taintsOf } from "../decide/index.ts";
import type { explainedTaint, nodeExplanation, ValueOf } from "../openapi/index.ts";

/** The conditions and taints that eviction sets on the node, and their history. */
export type NodeExplanation = ValueOf<typeof nodeExplanation>;

/** A condition that a plugin reports, with its taints. */
export type ExplainedCondition = NodeExplanation["conditions"][number];

/** A taint of the Node that the agent added, that has the agent's prefix, or that equals the taint of a condition. */
export type ExplainedTaint = ValueOf<typeof explainedTaint>;

/** The taints of a Node, and those that the agent added, as "key:effect". */
interface NodeTaints {
  taints: readonly { key?: string; effect?: string }[];
  own: ReadonlySet<string>;
}

/** Returns the conditions of a state, with their taints and transition periods under a policy. */
export function explainConditions(
  { at, conditions }: Pick<EvictionState, "at" | "conditions">,
  policy: EvictionPolicy,
): ExplainedCondition[] {
  return conditions.map(({ lastSeen, ...condition }) => {
    const alone = [{ ...condition, lastSeen }];
    const { taints } = taintsOf({ conditions: alone, merged: mergeConditions(alone) }, policy);
    const isMet = at !== null && lastSeen >= at;
    return {
      ...condition,
      taints: [
        ...taints.node.map(({ key, effect }) => `${key}:${effect}`),
        ...taints.customNodeResource.map(({ qosLevel, key, effect }) => `${key}:${effect} (${qosLevel})`),
      ],
      lastMet: lastSeen,
      isMet,
      until: isMet ? null : lastSeen + policy.conditionTransitionPeriodMs,
    };
  });
}

/** Returns the taints of a Node that concern eviction, sorted. */
export function explainTaints(
  { taints, own }: NodeTaints,
  conditions: readonly ExplainedCondition[],
  { taintPrefix }: Pick<EvictionPolicy, "taintPrefix">,
): ExplainedTaint[] {
  const desired = new Set(
    conditions.filter(({ target }) => target === "node").flatMap((condition) => condition.taints),
  );
  return taints
    .map(({ key, effect }) => `${key}:${effect}`)
    .filter((taint) => own.has(taint) || desired.has(taint) || taint.startsWith(`${taintPrefix}/`))
    .sort()
    .map((taint) => ({ taint, isOwn: own.has(taint), isDesired: desired.has(taint) }));
}
