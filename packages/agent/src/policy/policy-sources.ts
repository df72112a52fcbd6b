import { PolicyRefused } from "@nodekeeper/api/errors";
import { quote } from "@nodekeeper/core/lib";
import type { EvictionSource } from "../eviction/index.ts";
import { observedDetails } from "../pod-usage/index.ts";
import type { Policy } from "./policy.ts";
import { PolicySource, type PolicySourceOptions } from "./policy-source.ts";

/** Dependencies shared by the plugins of all policies. */
export type PolicyParts = Omit<PolicySourceOptions, "policy" | "wholePods">;

/**
 * Creates a plugin for each policy of any number of files. A pod is decoded once for all of them. Throws
 * `invalid` if two policies have the same name.
 */
export function policySources(policies: readonly Policy[], parts: PolicyParts): EvictionSource[] {
  const wholePods = observedDetails;
  const names = new Set<string>();
  return policies.map((policy) => {
    if (names.has(policy.name)) {
      throw new PolicyRefused({ problem: `there are two policies of the name ${quote(policy.name)}` });
    }
    names.add(policy.name);
    return new PolicySource({ ...parts, policy, wholePods });
  });
}
