import { quote } from "../text/index.ts";
import type { ConditionProgress, MergedCondition } from "./conditions.ts";
import type { Decision } from "./decision.ts";
import type { EvictionPolicy } from "./policy.ts";

/** All desired taints. The agent's other taints are removed. */
export type DesiredTaints = Decision["taints"];

/** A desired taint of the Node. */
export type NodeTaint = DesiredTaints["node"][number];

/** A desired taint of the CustomNodeResource, which applies to pods of one QoS level. */
export type CustomNodeResourceTaint = DesiredTaints["customNodeResource"][number];

/** A condition, or one of its effects, that does not become a taint. */
export type ConditionProblem = Decision["conditionProblems"][number];

/** The part of the policy that applies to taints. */
export type TaintRules = Pick<EvictionPolicy, "taintPrefix" | "taintEffects">;

const knownEffects: readonly string[] = ["NoSchedule", "PreferNoSchedule", "NoExecute"];
// The only QoS level for which katalyst's scheduler evaluates taints of the CustomNodeResource.
const tainableLevels: readonly string[] = ["reclaimed_cores"];
// The name part of a qualified name:
// https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/#syntax-and-character-set
const namePart = /^[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$/;

/**
 * Returns the taints of merged conditions, in their order. A malformed name or effect, or an effect that is not in
 * `taintEffects`, is omitted and returned as a problem; other effects of the condition are kept. Pure.
 */
export function taintsOf(
  { conditions, merged }: ConditionProgress,
  { taintPrefix, taintEffects }: TaintRules,
): { taints: DesiredTaints; problems: ConditionProblem[] } {
  const taints: DesiredTaints = { node: [], customNodeResource: [] };
  const problems: ConditionProblem[] = [];
  for (const { target, name, effects, plugins, since, why } of merged) {
    if (!namePart.test(name)) {
      const message = `condition ${quote(name)}: the name is not valid as the name part of a taint key`;
      problems.push({ condition: name, plugins, reason: "invalidName", message });
      continue;
    }
    const key = `${taintPrefix}/${name}`;
    for (const text of effects) {
      const refuse = (reason: ConditionProblem["reason"], why: string) => {
        const reporting = conditions.filter(
          (one) => one.target === target && one.name === name && one.effects.includes(text),
        );
        const message = `condition ${quote(name)}: ${quote(text)} ${why}`;
        problems.push({ condition: name, plugins: reporting.map(({ plugin }) => plugin), reason, message });
      };
      const { effect, qosLevel } = effectOf(target, text);
      if (effect === undefined) refuse("invalidEffect", expectedEffect[target]);
      else if (!taintEffects.includes(effect)) refuse("effectNotAllowed", "is not in eviction.taintEffects");
      else if (qosLevel === undefined) taints.node.push({ key, effect, since, why });
      else taints.customNodeResource.push({ qosLevel, key, effect, since, why });
    }
  }
  return { taints, problems };
}

const expectedEffect = {
  node: `is not a taint effect (${knownEffects.join(", ")})`,
  customNodeResource: "is not of the form reclaimed_cores/<effect>",
};

// "NoSchedule" for a Node, "reclaimed_cores/NoSchedule" for a CustomNodeResource; empty if malformed.
function effectOf(target: MergedCondition["target"], text: string): { effect?: string; qosLevel?: string } {
  if (target === "node") return knownEffects.includes(text) ? { effect: text } : {};
  const [qosLevel = "", effect = "", ...more] = text.split("/");
  const isSound = more.length === 0 && knownEffects.includes(effect) && tainableLevels.includes(qosLevel);
  return isSound ? { effect, qosLevel } : {};
}
