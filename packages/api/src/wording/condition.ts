import type { ExplainedCondition } from "../records/index.ts";

/** Returns the taints of a condition, such as "nodekeeper.dev/DiskHot:NoSchedule", or why it has none. */
export function conditionTaintsText({ taints, effects }: ExplainedCondition): string {
  if (taints.length > 0) return taints.join(", ");
  return effects.length > 0
    ? `none: ${effects.join(", ")} not allowed or malformed`
    : "none: no effect reported";
}
