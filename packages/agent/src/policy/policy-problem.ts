import { quote } from "@nodekeeper/core/lib";
import type { Policy } from "./policy.ts";

/** Why a policy, or the whole file, is refused. */
export interface PolicyProblem {
  file: string;
  /** Empty where it is not known. */
  policy: string;
  /** "rank[1]"; empty where it is about the whole. */
  field: string;
  /** In the file, from 1; 0 where there is no place. */
  line: number;
  column: number;
  message: string;
}

export interface LoadedPolicies {
  policies: Policy[];
  problems: PolicyProblem[];
}

/** One line for people: "policies.yaml:4:11: policy "memory": when: is empty". */
export function describeProblem({ file, policy, field, line, column, message }: PolicyProblem): string {
  const place = line > 0 ? `${file}:${line}:${column}` : file;
  return [place, policy && `policy ${quote(policy)}`, field, message]
    .filter((part) => part !== "")
    .join(": ");
}
