import type { EvictionSource } from "../../eviction/index.ts";
import { WholePods } from "../eviction/pod-resources.ts";
import type { Policy } from "./policy.ts";
import { PolicySource, type PolicySourceOptions } from "./policy-source.ts";

/** What policies are made of. */
export type PolicyParts = Omit<PolicySourceOptions, "policy" | "wholePods">;

/** A plugin for each policy. A pod is decoded once for all of them. */
export function policySources(policies: readonly Policy[], parts: PolicyParts): EvictionSource[] {
  const wholePods = new WholePods();
  return policies.map((policy) => new PolicySource({ ...parts, policy, wholePods }));
}
