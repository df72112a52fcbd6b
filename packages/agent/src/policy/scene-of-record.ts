import type { EvictionPod } from "@nodekeeper/api/decide";
import type { RoundRecord } from "@nodekeeper/api/records";
import { NodekeeperError } from "@nodekeeper/core/lib";
import type { PodDetails } from "../eviction/index.ts";
import type { PodUsage } from "./fields.ts";
import { detailsWith, type Scene } from "./scene.ts";
import { type SceneFile, snapshotOf } from "./scene-file.ts";

/**
 * Returns a scene with the pods of a recorded round. Records contain no readings, so those of the node, and
 * the usage and requests of pods, come from the scene file, as if they had been read in that round. Its pods
 * are matched by namespace and name. Throws `invalid`.
 */
export function sceneOfRecord({ id, input, decision }: RoundRecord, readings: SceneFile | undefined): Scene {
  const described = new Map(readings?.pods.map((pod) => [`${pod.namespace}/${pod.name}`, pod]));
  const usages = new Map<string, PodUsage>();
  const details = new Map<string, PodDetails>();
  for (const pod of input.pods) {
    if (!isPod(pod)) throw new NodekeeperError("invalid", `round ${id} has a malformed pod`);
    const known = described.get(`${pod.namespace}/${pod.name}`);
    if (known?.usage) usages.set(pod.uid, known.usage);
    if (known?.requests) details.set(pod.uid, detailsWith(known.requests));
  }
  const exclusions = new Map((decision.exclusions ?? []).map((exclusion) => [exclusion.uid, exclusion]));
  return {
    at: input.now,
    node: snapshotOf(readings?.node ?? {}, input.now),
    pods: input.pods
      .filter(({ uid }) => !exclusions.has(uid))
      .map((pod) => ({ pod, details: details.get(pod.uid) ?? {} })),
    others: [...exclusions.values()].map((exclusion) => {
      const { reason, detail } = exclusion;
      return { pod: exclusion, why: `not a candidate: ${reason}${detail ? `, ${detail}` : ""}` };
    }),
    usages,
  };
}

function isPod(pod: Partial<EvictionPod> | null): boolean {
  return (
    typeof pod?.uid === "string" &&
    typeof pod.namespace === "string" &&
    typeof pod.name === "string" &&
    typeof pod.labels === "object" &&
    pod.labels !== null &&
    Array.isArray(pod.annotationKeys)
  );
}
