import { NodekeeperError, quote } from "@nodekeeper/core/lib";
import type { EvictionSource } from "../eviction/index.ts";
import { observedDetails } from "../pod-usage/index.ts";
import type { Policy } from "./policy.ts";
import { PolicySource, type PolicySourceOptions } from "./policy-source.ts";

/** What policies are made of. */
export type PolicyParts = Omit<PolicySourceOptions, "policy" | "wholePods">;

/**
 * A plugin for each policy, of however many files. A pod is decoded once for all of them. Throws `invalid` where two
 * have one name.
 */
export function policySources(policies: readonly Policy[], parts: PolicyParts): EvictionSource[] {
  const wholePods = observedDetails;
  const names = new Set<string>();
  return policies.map((policy) => {
    if (names.has(policy.name)) {
      throw new NodekeeperError("invalid", `there are two policies of the name ${quote(policy.name)}`, {
        id: "NK1010",
      });
    }
    names.add(policy.name);
    return new PolicySource({ ...parts, policy, wholePods });
  });
}
