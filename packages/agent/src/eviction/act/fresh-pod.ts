import type { KubeClient } from "@nodekeeper/core/kube";
import { codeOf, messageOf, NodekeeperError } from "@nodekeeper/core/lib";
import { selectCandidates } from "../decide/candidates.ts";
import type { EvictionPod, PodReference } from "../decide/pods.ts";
import type { SkipRules } from "../decide/policy.ts";
import { observeJson } from "../observe/observed-pod.ts";
import { saysNoSuchPod } from "./api-refusal.ts";
import { podResource } from "./pod-resource.ts";

/** What a fresh reading says of a pod that was to go. */
export type FreshPod =
  /** It is no more, has finished, or another pod has its name. */
  | { kind: "gone"; message: string }
  /** It is terminating already. */
  | { kind: "terminating"; pod: EvictionPod }
  /** It may be evicted. */
  | { kind: "present"; pod: EvictionPod }
  /** It must not be evicted, whatever was decided. */
  | { kind: "protected"; message: string }
  /** It can't be said: never taken for gone. */
  | { kind: "unknown"; message: string; retryAfterMs: number | undefined; isForbidden: boolean };

/** What reading afresh needs to know. */
export interface FreshReading {
  client: Pick<KubeClient, "get">;
  nodeName: string;
  skip: SkipRules;
}

/**
 * Reads a pod from the API server before something is done to it. The eviction API takes from a disruption budget
 * before it looks at the UID, so the UID is compared here first.
 */
export async function readFreshPod(
  { client, nodeName, skip }: FreshReading,
  { name, namespace, uid }: PodReference,
  signal: AbortSignal,
): Promise<FreshPod> {
  let pod: EvictionPod;
  try {
    const object = await client.get(podResource, name, { namespace, signal });
    if (object.metadata.uid !== uid) return { kind: "gone", message: "another pod has its name now" };
    pod = observeJson(object).pod;
  } catch (error) {
    signal.throwIfAborted();
    if (saysNoSuchPod(error, name)) return { kind: "gone", message: "GET: 404, the pod is no more" };
    return {
      kind: "unknown",
      message: `GET: ${messageOf(error)}`,
      retryAfterMs: error instanceof NodekeeperError ? error.retryAfterMs : undefined,
      isForbidden: codeOf(error) === "forbidden",
    };
  }
  const [exclusion] = selectCandidates([pod], nodeName, skip).exclusions;
  if (exclusion === undefined) return { kind: "present", pod };
  if (exclusion.reason === "terminating") return { kind: "terminating", pod };
  if (exclusion.reason === "finished") return { kind: "gone", message: `it has finished: ${pod.phase}` };
  return { kind: "protected", message: `it is protected now: ${exclusion.detail}` };
}
