import { at, isTree } from "../json.ts";
import * as columns from "./columns.ts";
import { eventsV1, resourceSliceV1beta1 } from "./conversion.ts";
import { definitionOf, establishedStatus } from "./custom.ts";
import type { ResourceDefinition, ServedVersion } from "./definition.ts";
import { validateDeviceStatus } from "./device-status.ts";
import { validateNode } from "./node-rules.ts";
import { mergeRulesOnDemand, schemaNamed } from "./open-api.ts";
import { validateResourceSlice } from "./slice-rules.ts";

/** Returns a served version with the schema for validation. */
function version(name: string, schema: string): ServedVersion {
  return { name, openapi: schemaNamed(schema) };
}

const extensions = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1";

const eventFields = Object.fromEntries(
  ["kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath"].flatMap((field) => [
    [`involvedObject.${field}`, ["involvedObject", field]],
    [`regarding.${field}`, ["involvedObject", field]],
  ]),
);

function core(
  kind: string,
  plural: string,
  shortNames: string[],
  more: Partial<ResourceDefinition>,
): ResourceDefinition {
  const versions = more.versions ?? [version("v1", `io.k8s.api.core.v1.${kind}`)];
  return {
    group: "",
    kind,
    plural,
    singular: kind.toLowerCase(),
    shortNames,
    namespaced: true,
    versions,
    storage: plural,
    storedApiVersion: "v1",
    status: false,
    generation: false,
    mergeRules: mergeRulesOnDemand(versions[0]!.openapi),
    ...more,
  };
}

function grouped(
  group: string,
  kind: string,
  plural: string,
  versions: ResourceDefinition["versions"],
  more: Partial<ResourceDefinition>,
): ResourceDefinition {
  return core(kind, plural, [], {
    group,
    versions,
    storage: `${plural}.${group}`,
    storedApiVersion: `${group}/${versions[0]!.name}`,
    ...more,
  });
}

/** Returns the kinds that are served without a CustomResourceDefinition. */
export function builtInResources(): ResourceDefinition[] {
  return [
    core("Namespace", "namespaces", ["ns"], {
      namespaced: false,
      status: true,
      selectable: { "status.phase": ["status", "phase"] },
      columns: columns.namespaceColumns,
      onCreate: (namespace) => ({ ...namespace, status: { phase: "Active" } }),
    }),
    core("Node", "nodes", ["no"], {
      namespaced: false,
      status: true,
      keepsStatusOnCreate: true,
      statusWritesMetadata: true,
      selectable: { "spec.unschedulable": ["spec", "unschedulable"] },
      columns: columns.nodeColumns,
      validate: validateNode,
    }),
    core("Pod", "pods", ["po"], {
      categories: ["all"],
      status: true,
      eviction: true,
      generation: true,
      statusWritesMetadata: true,
      selectable: {
        "spec.nodeName": ["spec", "nodeName"],
        "spec.restartPolicy": ["spec", "restartPolicy"],
        "spec.schedulerName": ["spec", "schedulerName"],
        "spec.serviceAccountName": ["spec", "serviceAccountName"],
        "status.phase": ["status", "phase"],
        "status.podIP": ["status", "podIP"],
        "status.nominatedNodeName": ["status", "nominatedNodeName"],
      },
      columns: columns.podColumns,
      onCreate: (pod) => ({
        ...pod,
        status: { ...(isTree(pod.status) ? pod.status : {}), phase: at(pod, "status", "phase") ?? "Pending" },
      }),
    }),
    core("ConfigMap", "configmaps", ["cm"], { columns: columns.configMapColumns }),
    core("Secret", "secrets", [], { selectable: { type: ["type"] } }),
    core("Event", "events", ["ev"], {
      selectable: {
        ...eventFields,
        type: ["type"],
        reason: ["reason"],
        source: ["source", "component"],
        reportingComponent: ["reportingComponent"],
      },
      columns: columns.eventColumns,
    }),
    grouped(
      "events.k8s.io",
      "Event",
      "events",
      [{ ...eventsV1, openapi: schemaNamed("io.k8s.api.events.v1.Event") }],
      {
        shortNames: ["ev"],
        storage: "events",
        storedApiVersion: "v1",
        selectable: {
          ...eventFields,
          type: ["type"],
          reason: ["reason"],
          reportingController: ["reportingComponent"],
        },
        columns: columns.eventColumns,
        mergeRules: mergeRulesOnDemand(schemaNamed("io.k8s.api.core.v1.Event")),
      },
    ),
    grouped("coordination.k8s.io", "Lease", "leases", [version("v1", "io.k8s.api.coordination.v1.Lease")], {
      columns: columns.leaseColumns,
    }),
    grouped(
      "policy",
      "PodDisruptionBudget",
      "poddisruptionbudgets",
      [version("v1", "io.k8s.api.policy.v1.PodDisruptionBudget")],
      {
        shortNames: ["pdb"],
        status: true,
        generation: true,
        columns: columns.disruptionBudgetColumns,
      },
    ),
    grouped(
      "node.katalyst.kubewharf.io",
      "CustomNodeResource",
      "customnoderesources",
      [version("v1alpha1", "io.kubewharf.katalyst.node.v1alpha1.CustomNodeResource")],
      {
        shortNames: ["kcnr", "cnr"],
        namespaced: false,
        status: true,
        generation: true,
        custom: true,
        needsResourceVersion: true,
        columns: columns.nodeResourceColumns,
      },
    ),
    ...deviceResources(),
    grouped(
      "apiextensions.k8s.io",
      "CustomResourceDefinition",
      "customresourcedefinitions",
      [version("v1", `${extensions}.CustomResourceDefinition`)],
      {
        shortNames: ["crd", "crds"],
        namespaced: false,
        status: true,
        generation: true,
        columns: columns.customResourceDefinitionColumns,
        validate: definitionOf,
        onCreate: (definition, time) => ({ ...definition, status: establishedStatus(definition, time) }),
      },
    ),
  ];
}

function deviceResources(): ResourceDefinition[] {
  const group = "resource.k8s.io";
  const slice = (name: string) => `io.k8s.api.resource.${name}.ResourceSlice`;
  return [
    grouped(
      group,
      "ResourceSlice",
      "resourceslices",
      [
        version("v1", slice("v1")),
        version("v1beta2", slice("v1beta2")),
        { ...resourceSliceV1beta1, openapi: schemaNamed(slice("v1beta1")) },
      ],
      {
        namespaced: false,
        generation: true,
        selectable: { "spec.nodeName": ["spec", "nodeName"], "spec.driver": ["spec", "driver"] },
        columns: columns.resourceSliceColumns,
        validate: validateResourceSlice,
      },
    ),
    grouped(group, "DeviceClass", "deviceclasses", [version("v1", "io.k8s.api.resource.v1.DeviceClass")], {
      namespaced: false,
      generation: true,
    }),
    grouped(
      group,
      "ResourceClaim",
      "resourceclaims",
      [version("v1", "io.k8s.api.resource.v1.ResourceClaim")],
      { status: true, validate: validateDeviceStatus },
    ),
  ];
}
