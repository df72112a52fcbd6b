import type { KubeClient } from "@nodekeeper/core/kube";
import { codeOf, messageOf, NodekeeperError } from "@nodekeeper/core/lib";
import { selectCandidates } from "../decide/candidates.ts";
import type { EvictionPod, PodReference } from "../decide/pods.ts";
import type { SkipRules } from "../decide/policy.ts";
import { observeJson } from "../observe/observed-pod.ts";
import type { QosLevelReader } from "../observe/qos-level.ts";
import { endingOf, type PodEnding } from "../records/pod-ending.ts";
import { isPodNotFound } from "./api-refusal.ts";
import { podResource } from "./pod-resource.ts";

/** The current state of a pod that is to be evicted. */
export type FreshPod =
  /** It has ended; `seen` has how: it is deleted, another pod has its name, or it has finished. */
  | { kind: "deleted" | "replaced" | "finished"; seen: string }
  /** It is terminating already. */
  | { kind: "terminating"; pod: EvictionPod; ending: PodEnding }
  /** It may be evicted. */
  | { kind: "present"; pod: EvictionPod }
  /** It must not be evicted: it is protected since the decision. */
  | { kind: "protected"; message: string }
  /** The pod could not be read; it never counts as deleted. */
  | { kind: "unknown"; message: string; retryAfterMs: number | undefined; isForbidden: boolean };

/** The dependencies of `readFreshPod`. */
export interface FreshReading {
  client: Pick<KubeClient, "get">;
  nodeName: string;
  skip: SkipRules;
  /** As of `observeJson`. */
  qosLevelOf?: QosLevelReader | undefined;
}

/**
 * Reads a pod from the API server before it is evicted. The Eviction API decrements a PodDisruptionBudget before it
 * checks the UID precondition, so the UID is compared here first. Throws only the signal's reason.
 */
export async function readFreshPod(
  { client, nodeName, skip, qosLevelOf }: FreshReading,
  { name, namespace, uid }: PodReference,
  signal: AbortSignal,
): Promise<FreshPod> {
  let pod: EvictionPod;
  let ending: PodEnding;
  try {
    const object = await client.get(podResource, name, { namespace, signal });
    if (object.metadata.uid !== uid)
      return { kind: "replaced", seen: "pod deleted, and another pod created under its name" };
    pod = observeJson(object, qosLevelOf).pod;
    ending = endingOf(object);
  } catch (error) {
    signal.throwIfAborted();
    if (isPodNotFound(error, name)) return { kind: "deleted", seen: "pod deleted" };
    return {
      kind: "unknown",
      message: `GET: ${messageOf(error)}`,
      retryAfterMs: error instanceof NodekeeperError ? error.retryAfterMs : undefined,
      isForbidden: codeOf(error) === "forbidden",
    };
  }
  const [exclusion] = selectCandidates([pod], nodeName, skip).exclusions;
  if (exclusion === undefined) return { kind: "present", pod };
  if (pod.deletionTimestamp !== null) return { kind: "terminating", pod, ending };
  if (exclusion.reason === "finished") return { kind: "finished", seen: finishedText(ending) };
  return { kind: "protected", message: `pod is protected since the decision: ${exclusion.detail}` };
}

// "pod finished (Failed, Evicted)"
function finishedText({ phase, reason }: PodEnding): string {
  return `pod finished (${[phase, reason].filter((part) => part !== "").join(", ")})`;
}
