import { quote } from "../lib/index.ts";
import type { MergedCondition } from "./conditions.ts";

/** A taint the Node shall have. */
export interface NodeTaint {
  /** "nodekeeper.dev/MemoryPressure" */
  key: string;
  effect: string;
  /** For `timeAdded`: milliseconds since the epoch. */
  since: number;
}

/** A taint the CustomNodeResource shall have, for pods of one QoS level. */
export interface CustomNodeResourceTaint extends NodeTaint {
  qosLevel: string;
}

/** All taints that conditions lead to; none other with our prefix shall stay. */
export interface WantedTaints {
  node: NodeTaint[];
  customNodeResource: CustomNodeResourceTaint[];
}

/** A condition, or one effect of it, that can't be shown. */
export interface ConditionProblem {
  condition: string;
  plugins: string[];
  message: string;
}

const taintEffects: readonly string[] = ["NoSchedule", "PreferNoSchedule", "NoExecute"];
// The only level whose pods katalyst's scheduler keeps away by such a taint.
const tainableLevels: readonly string[] = ["reclaimed_cores"];
// The name part of a qualified name: https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/#syntax-and-character-set
const namePart = /^[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$/;

/** The taints of merged conditions, in their order. What is malformed is left out and told; the rest goes on. */
export function taintsOf(
  conditions: readonly MergedCondition[],
  prefix: string,
): { taints: WantedTaints; problems: ConditionProblem[] } {
  const taints: WantedTaints = { node: [], customNodeResource: [] };
  const problems: ConditionProblem[] = [];
  for (const { target, name, effects, plugins, since } of conditions) {
    const complain = (message: string) => problems.push({ condition: name, plugins, message });
    if (!namePart.test(name)) {
      complain(`${quote(name)} can't be the last part of a taint's key`);
      continue;
    }
    const key = `${prefix}/${name}`;
    for (const text of effects) {
      if (target === "node") {
        if (taintEffects.includes(text)) taints.node.push({ key, effect: text, since });
        else complain(`${quote(text)} is no effect of a taint`);
        continue;
      }
      const [qosLevel = "", effect = "", ...more] = text.split("/");
      if (more.length > 0 || !taintEffects.includes(effect) || !tainableLevels.includes(qosLevel)) {
        complain(`${quote(text)} is not of the form reclaimed_cores/<effect>`);
        continue;
      }
      taints.customNodeResource.push({ qosLevel, key, effect, since });
    }
  }
  return { taints, problems };
}
