import type { ExplainedCondition } from "../records/explain-node.ts";

/** The taints of a condition, or why it has none: "nodekeeper.dev/DiskHot:NoSchedule". */
export function conditionTaintsText({
  taints,
  effects,
}: Pick<ExplainedCondition, "taints" | "effects">): string {
  if (taints.length > 0) return taints.join(", ");
  return effects.length > 0
    ? `none: ${effects.join(", ")} not allowed or malformed`
    : "none: no effect reported";
}
