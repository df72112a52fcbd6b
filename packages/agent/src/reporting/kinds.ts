import type { GroupVersionKind } from "@nodekeeper/core/kube";
import { isLabelName } from "@nodekeeper/core/lib";

/** Parts of an object that plugins report, as in FieldType of reporterplugin.v1alpha1. */
export type Part = "spec" | "status" | "metadata";

export const customNodeResource: GroupVersionKind = {
  group: "node.katalyst.kubewharf.io",
  version: "v1alpha1",
  kind: "CustomNodeResource",
};

export const node: GroupVersionKind = { group: "", version: "v1", kind: "Node" };

/**
 * Size limit of the plugins' fields in one object, in bytes. etcd accepts requests of 1.5 MiB (--max-request-bytes).
 * The remainder is reserved for fields of other clients.
 */
export const OBJECT_BUDGET_BYTES = 1024 * 1024;

/** Returns "group/version/kind", or "v1/Node" for the core group. */
export function kindKey({ group, version, kind }: GroupVersionKind): string {
  return group === "" ? `${version}/${kind}` : `${group}/${version}/${kind}`;
}

/** Fields of one kind that plugins may report. */
export interface KindPolicy {
  kind: GroupVersionKind;
  /** Field names that plugins may report in each part. Undefined allows any field; an absent part allows none. */
  fields: Partial<Record<Part, readonly string[] | undefined>>;
  /** Required JSON types of known fields, by "part.name". */
  shapes: Readonly<Record<string, JsonShape>>;
  /** Whether status quantities are limited to extended resources. */
  extendedResourcesOnly: boolean;
}

/** `array`: a list of objects; `strings`: a map of strings; `quantities`: a map of Kubernetes quantities. */
export type JsonShape = "object" | "array" | "string" | "strings" | "quantities";

// Plugins must not set finalizers, owner references or names.
const metadataFields = ["labels", "annotations"] as const;
const metadataShapes = { "metadata.labels": "strings", "metadata.annotations": "strings" } as const;

/** Returns the kinds that plugins may report: CustomNodeResource, Node, and reporting.additionalKinds. */
export function kindPolicies(additional: readonly GroupVersionKind[]): ReadonlyMap<string, KindPolicy> {
  const policies: KindPolicy[] = additional.map((kind) => ({
    kind,
    fields: { spec: undefined, status: undefined, metadata: metadataFields },
    shapes: metadataShapes,
    extendedResourcesOnly: false,
  }));
  policies.push({
    kind: customNodeResource,
    fields: { spec: undefined, status: undefined, metadata: metadataFields },
    shapes: {
      ...metadataShapes,
      "spec.nodeResourceProperties": "array",
      "spec.taints": "array",
      "status.resources": "object",
      "status.topologyZone": "array",
      "status.topologyPolicy": "string",
      "status.conditions": "array",
      "status.nodeMetricStatus": "object",
    },
    extendedResourcesOnly: false,
  });
  policies.push({
    kind: node,
    fields: { status: ["capacity", "allocatable"], metadata: metadataFields },
    shapes: { ...metadataShapes, "status.capacity": "quantities", "status.allocatable": "quantities" },
    extendedResourcesOnly: true,
  });
  return new Map(policies.map((policy) => [kindKey(policy.kind), policy]));
}

/**
 * Returns whether a resource name is an extended resource, which clients other than the kubelet may set on a Node.
 * Source: https://kubernetes.io/docs/tasks/administer-cluster/extended-resource-node/
 */
export function isExtendedResource(name: string): boolean {
  const slash = name.indexOf("/");
  if (slash <= 0 || name.startsWith("requests.")) return false;
  const domain = name.slice(0, slash);
  return domain !== "kubernetes.io" && !domain.endsWith(".kubernetes.io") && isLabelName(name);
}

/**
 * Annotation of a CustomNodeResource or Node that lists the taints added by the agent, as a JSON list of
 * "key:effect:qosLevel" for a CustomNodeResource or "key:effect" for a Node. managedFields cannot identify these
 * taints, because the list of taints is a single atomic field.
 */
export const OWN_TAINTS = "nodekeeper.dev/own-taints";

// Reserved labels affect scheduling and the kubelet.
const reservedLabelDomain =
  /^(?:(?:.*\.)?(?:node|node-role|node-restriction|topology|beta|kubelet)\.)?(?:kubernetes|k8s)\.io$/;

/** Returns why a plugin must not set this label or annotation. Undefined if it may. */
export function refusedMetadataKey(key: string): string | undefined {
  if (!isLabelName(key)) return "is not a qualified name";
  if (key === OWN_TAINTS) return "is reserved for the agent";
  const domain = key.includes("/") ? key.slice(0, key.indexOf("/")) : "";
  if (domain.startsWith("feature.node.")) return undefined;
  return reservedLabelDomain.test(domain) ? `is reserved for Kubernetes (${domain})` : undefined;
}
