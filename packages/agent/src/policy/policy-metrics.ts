import { metricTable, type Registry } from "@nodekeeper/core/lib";

/** What a policy could not evaluate: the node, or some of the pods. */
export const policyProblems = ["node", "pods"] as const;
export type PolicyProblem = (typeof policyProblems)[number];

/** Metrics of eviction policies. Each registry accepts one instance. */
export function createPolicyMetrics(registry: Registry) {
  const { counter, gauge } = metricTable(registry, "nodekeeper_intree_policy_");
  return {
    met: gauge("met", "Whether an eviction policy finds pressure on the node: 1 or 0.", ["policy"]),
    problems: counter(
      "problems_total",
      "Rounds in which an eviction policy could not evaluate the node (node) or some pods (pods).",
      ["policy", "problem"],
    ),
  };
}

export type PolicyMetrics = ReturnType<typeof createPolicyMetrics>;
