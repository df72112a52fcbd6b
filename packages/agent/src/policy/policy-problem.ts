import { quote } from "@nodekeeper/core/lib";
import { describeAt } from "@nodekeeper/core/yaml";
import type { Policy } from "./policy.ts";

/** Why a policy or a whole file is rejected. */
export interface PolicyProblem {
  file: string;
  /** Name of the policy; empty if unknown. */
  policy: string;
  /** Path of the field, such as "rank[1]"; empty if the problem concerns the whole policy or file. */
  field: string;
  /** Position in the file, starting at 1; 0 if unknown. */
  line: number;
  column: number;
  message: string;
}

export interface LoadedPolicies {
  policies: Policy[];
  problems: PolicyProblem[];
}

/** Returns a line for operators: "policies.yaml:4:11: policy "memory": when: is empty". */
export function describeProblem({ file, policy, field, line, column, message }: PolicyProblem): string {
  const place = line > 0 ? { line, column } : undefined;
  return describeAt(file, place, policy && `policy ${quote(policy)}`, field, message);
}
