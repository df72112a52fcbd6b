import type { LoadedPolicies } from "./policy-problem.ts";

/**
 * Compiles the policies of a YAML text. A policy that is wrong is among the problems, with its place, and the others go
 * on. @param file for messages
 */
export async function loadPolicies(file: string, text: string): Promise<LoadedPolicies> {
  // CEL takes 8 MB, which an agent without policies need not have.
  const { readPolicies } = await import("./read-policies.ts");
  return readPolicies(file, text);
}
