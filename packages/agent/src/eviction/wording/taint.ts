import type { ExplainedTaint, NodeExplanation } from "../records/explain-node.ts";

/** Why a taint of the Node is there, as far as it is known, and what becomes of it. */
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

/** Taints that their condition does not explain: not the agent's, or left over. */
export function shownTaints({ taints }: Pick<NodeExplanation, "taints">): ExplainedTaint[] {
  return (taints ?? []).filter(({ isOwn, isDesired }) => !isOwn || !isDesired);
}
