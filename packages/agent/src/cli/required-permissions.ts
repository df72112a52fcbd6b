import { isFullDryRun } from "@nodekeeper/api/decide";
import type { AgentConfiguration } from "@nodekeeper/api/settings";
import type { AccessQuestion } from "@nodekeeper/core/kube";
import { leaseName } from "../devices/index.ts";
import { customNodeResource } from "../reporting/index.ts";

// TokenReview and SubjectAccessReview for eviction plugins (eviction.strict) and for clients of the status server.
const reviewPermissions: AccessQuestion[] = [
  { verb: "create", group: "authentication.k8s.io", resource: "tokenreviews" },
  { verb: "create", group: "authorization.k8s.io", resource: "subjectaccessreviews" },
];

// The second exists since Kubernetes 1.36; the API server checks it with the driver as the resource name.
const statusPermissions: AccessQuestion[] = [
  { verb: "patch", group: "resource.k8s.io", resource: "resourceclaims", subresource: "status" },
  {
    verb: "associated-node:patch",
    group: "resource.k8s.io",
    resource: "resourceclaims",
    subresource: "driver",
  },
  // For drivers to which allocations are reported.
  ...["list", "watch"].map((verb) => ({ verb, group: "resource.k8s.io", resource: "resourceclaims" })),
];

function leasePermissions({
  drivers,
  leaseNamespace: namespace,
}: AgentConfiguration["devices"]["clusterPools"]): AccessQuestion[] {
  if (drivers.length === 0) return [];
  const resource = { group: "coordination.k8s.io", resource: "leases", namespace };
  const named = drivers.flatMap((driver) =>
    ["get", "update", "delete"].map((verb) => ({ verb, ...resource, name: leaseName(driver) })),
  );
  return [{ verb: "create", ...resource }, ...named];
}

/** Returns the permissions that the agent needs with this configuration. */
export function requiredPermissions(configuration: AgentConfiguration): AccessQuestion[] {
  const { nodeName, eviction, server, devices } = configuration;
  const cnr = { group: customNodeResource.group, resource: "customnoderesources", name: nodeName };
  const coreNode = { group: "", resource: "nodes", name: nodeName };
  return [
    ...["get", "list", "watch", "patch"].map((verb) => ({ verb, ...cnr })),
    { verb: "create", group: cnr.group, resource: cnr.resource },
    { verb: "patch", ...cnr, subresource: "status" },
    ...["get", "list", "watch", "patch"].map((verb) => ({ verb, ...coreNode })),
    { verb: "patch", ...coreNode, subresource: "status" },
    ...["list", "watch", "create", "update", "delete"].map((verb) => ({
      verb,
      group: "resource.k8s.io",
      resource: "resourceslices",
    })),
    ...leasePermissions(devices.clusterPools),
    ...(devices.kubeletPlugin.enabled
      ? [
          { verb: "get", group: "resource.k8s.io", resource: "resourceclaims" },
          // For eviction, it is asked for below.
          ...(eviction.enabled ? [] : [{ verb: "get", group: "", resource: "pods" }]),
        ]
      : []),
    ...(devices.kubeletPlugin.enabled && devices.kubeletPlugin.deviceStatus
      ? [
          ...statusPermissions,
          ...(eviction.enabled
            ? []
            : ["list", "watch"].map((verb) => ({ verb, group: "", resource: "pods" }))),
        ]
      : []),
    ...["create", "patch"].map((verb) => ({ verb, group: "", resource: "events" })),
    ...(eviction.enabled ? evictionPermissions(eviction) : []),
    ...((eviction.enabled && eviction.strict) || server.tlsCertFile !== "" ? reviewPermissions : []),
  ];
}

function evictionPermissions(eviction: AgentConfiguration["eviction"]): AccessQuestion[] {
  const { killer, killerRules } = eviction;
  const killers = [killer, ...killerRules.map((rule) => rule.split("=")[1])];
  const permissions = ["get", "list", "watch"].map((verb) => ({ verb, group: "", resource: "pods" }));
  if (isFullDryRun(eviction)) return permissions;
  const more: AccessQuestion[] = [];
  if (killers.includes("evictionApi"))
    more.push({ verb: "create", group: "", resource: "pods", subresource: "eviction" });
  if (killers.includes("deletion")) more.push({ verb: "delete", group: "", resource: "pods" });
  return [...permissions, ...more];
}
