import { type PodSelector, parsePodName } from "../pod-name.ts";
import type { AgentAccess, Options } from "./context.ts";

/** Returns the pods that a command lists: the named one, or all in the selected namespace. */
export async function podSelector(
  agents: AgentAccess,
  options: Options,
  pod: string | undefined,
): Promise<PodSelector> {
  if (pod !== undefined) return parsePodName(pod, await agents.defaultNamespace(options));
  const namespace = await agents.namespaceOf(options);
  return namespace === undefined ? {} : { namespace };
}
