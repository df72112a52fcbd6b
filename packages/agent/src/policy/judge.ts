import type { Expression } from "./expression.ts";
import { type NodeSnapshot, nodeVariable } from "./node-snapshot.ts";
import { nodeReadsOf, type Policy } from "./policy.ts";

/** The result of a policy for the node. */
export interface Verdict {
  /** `unknown`: a field that the policy reads is unknown, so no pods are evicted. */
  state: "met" | "notMet" | "unknown";
  /** Met only because the minimum reclaim has not been reached yet. */
  isHeld: boolean;
  observed: number | null;
  threshold: number | null;
  problems: string[];
}

/**
 * Evaluates a policy for the node. Never throws. If any field that the policy reads is missing or stale, the
 * state is `unknown`, regardless of the others.
 * @param wasMet whether there was pressure before; pressure lasts until the minimum reclaim is reached
 */
export function judge(policy: Policy, snapshot: NodeSnapshot, now: number, wasMet: boolean): Verdict {
  const { node, problems } = nodeVariable(snapshot, nodeReadsOf(policy), now);
  const unknown: Verdict = { state: "unknown", isHeld: false, observed: null, threshold: null, problems };
  if (problems.length > 0) return unknown;
  const number = (field: "observed" | "threshold" | "minimumReclaim") => {
    return resultOf(field, policy[field], node, problems);
  };
  const observed = number("observed");
  const threshold = number("threshold");
  const isOver = policy.when
    ? resultOf("when", policy.when, node, problems)
    : observed !== null && threshold !== null && isBeyond(policy.operator, observed, threshold);
  const reclaim = isOver || !wasMet ? null : number("minimumReclaim");
  if (isOver === null || problems.length > 0) return { ...unknown, observed, threshold };
  const isHeld =
    reclaim !== null && isBeyond(policy.operator, observed!, backFrom(policy.operator, threshold!, reclaim));
  return { state: isOver || isHeld ? "met" : "notMet", isHeld, observed, threshold, problems };
}

function resultOf<T>(
  field: string,
  expression: Expression<T> | null,
  node: unknown,
  problems: string[],
): T | null {
  if (expression === null) return null;
  const result = expression.evaluate({ node });
  if ("value" in result) return result.value;
  problems.push(`${field}: ${result.problem}`);
  return null;
}

function isBeyond(operator: Policy["operator"], observed: number, threshold: number): boolean {
  return operator === "lessThan" ? observed < threshold : observed > threshold;
}

function backFrom(operator: Policy["operator"], threshold: number, reclaim: number): number {
  return operator === "lessThan" ? threshold + reclaim : threshold - reclaim;
}
