import type { GroupVersionKind } from "@nodekeeper/core/kube";

/** The parts of an object that plugins report, as in FieldType of reporterplugin.v1alpha1. */
export type Part = "spec" | "status" | "metadata";

export const customNodeResource: GroupVersionKind = {
  group: "node.katalyst.kubewharf.io",
  version: "v1alpha1",
  kind: "CustomNodeResource",
};

export const node: GroupVersionKind = { group: "", version: "v1", kind: "Node" };

/**
 * Limit for the plugins' fields in one object, in bytes. etcd accepts requests of 1.5 MiB (--max-request-bytes); the
 * remainder is left for the fields of other clients.
 */
export const OBJECT_BUDGET_BYTES = 1024 * 1024;

/** "group/version/kind"; "v1/Node" in the core group. */
export function kindKey({ group, version, kind }: GroupVersionKind): string {
  return group === "" ? `${version}/${kind}` : `${group}/${version}/${kind}`;
}

/** Which fields of one kind plugins may report. */
export interface KindPolicy {
  kind: GroupVersionKind;
  /** Field names that plugins may report in each part; undefined for any. */
  fields: Partial<Record<Part, readonly string[] | undefined>>;
  /** Required JSON types of known fields, by "part.name". */
  shapes: Readonly<Record<string, JsonShape>>;
  /** Whether status quantities are restricted to extended resources. */
  extendedResourcesOnly: boolean;
}

/** `array` is a list of objects, `strings` a map of strings, `quantities` a map of Kubernetes quantities. */
export type JsonShape = "object" | "array" | "string" | "strings" | "quantities";

// Reporters may not set finalizers, owner references or names.
const metadataFields = ["labels", "annotations"] as const;
const metadataShapes = { "metadata.labels": "strings", "metadata.annotations": "strings" } as const;

/** The kinds that plugins may report: CustomNodeResource, Node, and reporting.additionalKinds. */
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
 * Whether a resource name is an extended resource, which clients other than the kubelet may set on a Node:
 * https://kubernetes.io/docs/tasks/administer-cluster/extended-resource-node/
 */
export function isExtendedResource(name: string): boolean {
  const slash = name.indexOf("/");
  if (slash <= 0 || name.startsWith("requests.")) return false;
  const domain = name.slice(0, slash);
  return domain !== "kubernetes.io" && !domain.endsWith(".kubernetes.io") && isQualifiedName(name);
}

/**
 * The annotation of a CustomNodeResource or a Node that lists the taints that the agent added, as a JSON list:
 * "key:effect:qosLevel" of a CustomNodeResource, "key:effect" of a Node. The list of taints is one atomic field with one
 * owner, so managedFields do not identify the taints of the agent.
 */
export const OWN_TAINTS = "nodekeeper.dev/own-taints";

// Reserved labels affect scheduling and the kubelet.
const reservedLabelDomain =
  /^(?:(?:.*\.)?(?:node|node-role|node-restriction|topology|beta|kubelet)\.)?(?:kubernetes|k8s)\.io$/;

/** Why a plugin may not set this label or annotation; undefined if it may. */
export function refusedMetadataKey(key: string): string | undefined {
  if (!isQualifiedName(key)) return "is not a qualified name";
  if (key === OWN_TAINTS) return "is reserved for the agent";
  const domain = key.includes("/") ? key.slice(0, key.indexOf("/")) : "";
  if (domain.startsWith("feature.node.")) return undefined;
  return reservedLabelDomain.test(domain) ? `is reserved for Kubernetes (${domain})` : undefined;
}

const namePattern = /^[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$/;
const subdomainPattern = /^[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*$/;

/** https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/#syntax-and-character-set */
export function isQualifiedName(name: string): boolean {
  const slash = name.indexOf("/");
  if (slash < 0) return namePattern.test(name);
  const domain = name.slice(0, slash);
  return domain.length <= 253 && subdomainPattern.test(domain) && namePattern.test(name.slice(slash + 1));
}

/** The same page's rule for values: empty, or at most 63 characters of a name. */
export function isLabelValue(value: string): boolean {
  return value === "" || namePattern.test(value);
}
