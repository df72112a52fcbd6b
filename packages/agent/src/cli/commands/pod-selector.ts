import { type PodSelector, parsePodName } from "../pod-name.ts";
import type { AgentAccess, Options } from "./context.ts";

/** The pods that a command lists: the one that is named, else those of the namespace that its options select. */
export async function podSelector(
  agents: AgentAccess,
  options: Options,
  pod: string | undefined,
): Promise<PodSelector> {
  if (pod !== undefined) return parsePodName(pod, await agents.defaultNamespace(options));
  const namespace = await agents.namespaceOf(options);
  return namespace === undefined ? {} : { namespace };
}
