import type { EvictionPod, PodReference } from "@nodekeeper/api/decide";
import type { Attributes } from "./archive-record.ts";

/**
 * Attributes of exported records, with their descriptions. Those named `k8s.*` follow OpenTelemetry's semantic
 * conventions for Kubernetes.
 */
export const attributeTexts = {
  "k8s.pod.uid": "UID of the pod.",
  "k8s.pod.name": "Name of the pod.",
  "k8s.namespace.name": "Namespace of the pod or claim.",
  "nodekeeper.record.id": "Identifies the record. The same however often it is exported: deduplicate by it.",
  "nodekeeper.record.sequence":
    "Position in the queue of the state database. Records of a node are sent in this order.",
  "nodekeeper.schema.version": "Version of this schema: of events, attributes and bodies.",
  "nodekeeper.message": "One line for people.",
  "nodekeeper.pod.owner": "Controller of the pod: `ReplicaSet/web-5d4f`.",
  "nodekeeper.round": "ID of the round, as in `nodekeeper rounds`.",
  "nodekeeper.plugin": "Plugin that caused it.",
  "nodekeeper.scope": "Scope of the plugin's threshold.",
  "nodekeeper.result":
    "Of a decision: `selected`, `refused`, `withdrawing`, or the result of the eviction's outcome. Of a claim: `prepared`, `unprepared`. Of a condition: `set`, `cleared`. Of a mark: its kind.",
  "nodekeeper.reason":
    "Of a refusal: `RefusalReason`. Of a pod's end: `status.reason`, or that of its condition DisruptionTarget.",
  "nodekeeper.driver": "Device driver of the claim.",
  "nodekeeper.claim.uid": "UID of the ResourceClaim.",
  "nodekeeper.claim.name": "Name of the ResourceClaim.",
  "nodekeeper.gap.records": "Number of records that were deleted before they were exported.",
} as const;

export type AttributeName = keyof typeof attributeTexts;

/** Attributes by their declared names. */
export type DeclaredAttributes = { readonly [Name in AttributeName]?: Attributes[string] };

/** Returns the attributes of a pod. */
export function podAttributes(
  { uid, namespace, name }: PodReference,
  pod?: Pick<EvictionPod, "owner"> | null,
): DeclaredAttributes {
  const owner = pod?.owner;
  return {
    "k8s.pod.uid": uid,
    "k8s.namespace.name": namespace,
    "k8s.pod.name": name,
    "nodekeeper.pod.owner": owner ? `${owner.kind}/${owner.name}` : undefined,
  };
}
