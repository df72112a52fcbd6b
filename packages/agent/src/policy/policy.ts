import type { Condition, Formula } from "./expression.ts";

/** What an operator wrote, compiled. */
export interface Policy {
  /** 1 to 63 characters; the plugin's name is this behind "policy-". */
  name: string;
  /** One sentence for people. */
  description: string;
  type: "hard" | "soft";
  /** Of the node: whether there is pressure. Null: where `observed` is beyond `threshold`. */
  when: Condition | null;
  /** Of the node: what is compared. */
  observed: Formula | null;
  threshold: Formula | null;
  /** How `observed` lies to `threshold` under pressure. */
  operator: "lessThan" | "greaterThan";
  /** Of the node: how far `observed` must be back beyond `threshold` before pressure ends. */
  minimumReclaim: Formula | null;
  /** How long there must be pressure before a pod is evicted, milliseconds. */
  gracePeriodMs: number;
  scope: string;
  condition: PolicyCondition | null;
  /** Of a pod: whether it may be evicted. Null: any pod. */
  pods: Condition | null;
  /** Of a pod: who goes first has the greatest first number; where these are equal, the greatest second one. */
  rank: Formula[];
  /** How long a victim's containers have to end, milliseconds; null is the pod's own. */
  terminationGracePeriodMs: number | null;
}

/** Shown on the node while there is pressure. */
export interface PolicyCondition {
  target: "node" | "customNodeResource";
  name: string;
  effects: string[];
}

/** The fields of the node that a policy reads, sorted: "node.memory.total". */
export function nodeReadsOf({ when, observed, threshold, minimumReclaim }: Policy): string[] {
  return readsOf([when, observed, threshold, minimumReclaim]);
}

/** The fields of pods that a policy reads, sorted: "pod.usage.rss". */
export function podReadsOf({ pods, rank }: Policy): string[] {
  return readsOf([pods, ...rank]);
}

function readsOf(expressions: readonly ({ reads: readonly string[] } | null)[]): string[] {
  return [...new Set(expressions.flatMap((expression) => expression?.reads ?? []))].sort();
}
