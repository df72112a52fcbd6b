import {
  type EvictionPod,
  type PodReference,
  type SkipRules,
  selectCandidates,
} from "@nodekeeper/api/decide";
import type { PodEnding } from "@nodekeeper/api/records";
import { type KubeClient, podResource } from "@nodekeeper/core/kube";
import { codeOf, messageOf, requestedWaitOf } from "@nodekeeper/core/lib";
import type { EvictionContext } from "../context.ts";
import { observeJson } from "../observe/observed-pod.ts";
import { endingOf } from "../records/pod-ending.ts";
import { isPodNotFound } from "./api-refusal.ts";

/** The current state of a pod before its eviction. */
export type FreshPod =
  /**
   * It has ended, as `seen` describes: it was deleted, replaced by another pod of the same name, or it has finished.
   */
  | { kind: "deleted" | "replaced" | "finished"; seen: string }
  /** It is already terminating. */
  | { kind: "terminating"; pod: EvictionPod; ending: PodEnding }
  /** It may be evicted, in this version. */
  | { kind: "present"; pod: EvictionPod; resourceVersion: string | undefined }
  /** It must not be evicted: it became protected after the decision. */
  | { kind: "protected"; message: string }
  /** The pod could not be read. This never counts as deleted. */
  | { kind: "unknown"; message: string; retryAfterMs: number | undefined; isForbidden: boolean };

/** The dependencies of `readFreshPod`. */
export interface FreshReading extends Pick<EvictionContext, "nodeName" | "qosLevelOf"> {
  client: Pick<KubeClient, "get">;
  skip: SkipRules;
}

/**
 * Reads a pod from the API server before its eviction. The Eviction API decrements a PodDisruptionBudget before it
 * checks the preconditions, so the UID is compared here first. Throws only the signal's reason.
 */
export async function readFreshPod(
  { client, nodeName, skip, qosLevelOf }: FreshReading,
  { name, namespace, uid }: PodReference,
  signal: AbortSignal,
): Promise<FreshPod> {
  let pod: EvictionPod;
  let ending: PodEnding;
  let resourceVersion: string | undefined;
  try {
    const object = await client.get(podResource, name, { namespace, signal });
    if (object.metadata.uid !== uid)
      return { kind: "replaced", seen: "pod deleted, and another pod created under its name" };
    pod = observeJson(object, qosLevelOf).pod;
    ending = endingOf(object);
    resourceVersion = object.metadata.resourceVersion;
  } catch (error) {
    signal.throwIfAborted();
    if (isPodNotFound(error, name)) return { kind: "deleted", seen: "pod deleted" };
    return {
      kind: "unknown",
      message: `GET: ${messageOf(error)}`,
      retryAfterMs: requestedWaitOf(error),
      isForbidden: codeOf(error) === "forbidden",
    };
  }
  const [exclusion] = selectCandidates([pod], nodeName, skip).exclusions;
  if (exclusion === undefined) return { kind: "present", pod, resourceVersion };
  if (pod.deletionTimestamp !== null) return { kind: "terminating", pod, ending };
  if (exclusion.reason === "finished") return { kind: "finished", seen: finishedText(ending) };
  return { kind: "protected", message: `pod is protected since the decision: ${exclusion.detail}` };
}

// For example "pod finished (Failed, Evicted)".
function finishedText({ phase, reason }: PodEnding): string {
  return `pod finished (${[phase, reason].filter((part) => part !== "").join(", ")})`;
}
