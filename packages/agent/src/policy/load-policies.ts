import type { LoadedPolicies } from "./policy-problem.ts";

/**
 * Compiles the policies of a YAML text. An invalid policy is reported among the problems with its position;
 * the others are loaded.
 * @param file name of the file, for messages
 */
export async function loadPolicies(file: string, text: string): Promise<LoadedPolicies> {
  // The CEL library takes 8 MB of memory, which an agent without policies saves.
  const { readPolicies } = await import("./read-policies.ts");
  return readPolicies(file, text);
}
