import type { Condition, Formula } from "./expression.ts";

/** A compiled eviction policy. */
export interface Policy {
  /** 1 to 63 characters. The plugin is named "policy-" followed by this name. */
  name: string;
  /** A sentence for operators. */
  description: string;
  type: "hard" | "soft";
  /** Whether the node is under pressure. If null, it is when `observed` is beyond `threshold`. */
  when: Condition | null;
  /** Values of the node to compare. */
  observed: Formula | null;
  threshold: Formula | null;
  /** How `observed` compares to `threshold` under pressure. */
  operator: "lessThan" | "greaterThan";
  /** How far `observed` must return past `threshold` before pressure ends. */
  minimumReclaim: Formula | null;
  /** How long pressure must last before a pod is evicted, in milliseconds. */
  gracePeriodMs: number;
  scope: string;
  condition: PolicyCondition | null;
  /** Whether a pod may be evicted. If null, any pod may be. */
  pods: Condition | null;
  /**
   * Numbers of a pod. The pod with the greatest first number is evicted first; if equal, the one with the
   * greatest second number, and so on.
   */
  rank: Formula[];
  /** Termination grace period of evicted pods in milliseconds. Null for that of the pod spec. */
  terminationGracePeriodMs: number | null;
}

/** Condition set on the node while it is under pressure. */
export interface PolicyCondition {
  target: "node" | "customNodeResource";
  name: string;
  effects: string[];
}

/** Returns the fields of the node that a policy reads, sorted: "node.memory.total". */
export function nodeReadsOf({ when, observed, threshold, minimumReclaim }: Policy): string[] {
  return readsOf([when, observed, threshold, minimumReclaim]);
}

/** Returns the fields of pods that a policy reads, sorted: "pod.usage.rss". */
export function podReadsOf({ pods, rank }: Policy): string[] {
  return readsOf([pods, ...rank]);
}

function readsOf(expressions: readonly ({ reads: readonly string[] } | null)[]): string[] {
  return [...new Set(expressions.flatMap((expression) => expression?.reads ?? []))].sort();
}
