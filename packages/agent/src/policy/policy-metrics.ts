import { Counter, Gauge, type Registry } from "@nodekeeper/core/lib";

/** What a policy could not judge: the node, or some pods. */
export const policyProblems = ["node", "pods"] as const;
export type PolicyProblem = (typeof policyProblems)[number];

/** What policies met and could not do. */
export interface PolicyMetrics {
  /** 1 while there is pressure. */
  met: Gauge<"policy">;
  problems: Counter<"policy" | "problem">;
}

/** One of them for each registry. */
export function createPolicyMetrics(registry: Registry): PolicyMetrics {
  return {
    met: new Gauge({
      name: "nodekeeper_intree_policy_met",
      help: "Whether an eviction policy finds pressure on the node: 1 or 0",
      labelNames: ["policy"],
      registers: [registry],
    }),
    problems: new Counter({
      name: "nodekeeper_intree_policy_problems_total",
      help: "Rounds in which an eviction policy could not judge the node (node) or some pods (pods)",
      labelNames: ["policy", "problem"],
      registers: [registry],
    }),
  };
}
