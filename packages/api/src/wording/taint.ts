import type { ExplainedTaint, NodeExplanation } from "../records/index.ts";

/** Describes why a taint is on the Node, as far as known, and whether it will be removed. */
export function nodeTaintText(
  { taint, isOwn, isDesired }: ExplainedTaint,
  { isDryRun, nodeName }: Pick<NodeExplanation, "isDryRun" | "nodeName">,
): string {
  if (!isOwn) {
    const then = isDesired ? "it stays when the condition clears" : "it is left as it is";
    return `${taint}: not known to be added by this agent; ${then}`;
  }
  if (isDryRun) {
    const command = `kubectl taint node ${nodeName ?? "NODE"} ${taint}-`;
    return `${taint}: added by this agent; dry run leaves it; "${command}" removes it`;
  }
  return isDesired
    ? `${taint}: added by this agent`
    : `${taint}: added by this agent; no condition requires it any more`;
}

/** Returns the taints that no condition explains: not added by the agent, or left over. */
export function shownTaints({ taints }: Pick<NodeExplanation, "taints">): ExplainedTaint[] {
  return (taints ?? []).filter(({ isOwn, isDesired }) => !isOwn || !isDesired);
}
