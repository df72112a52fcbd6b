import { at, isTree } from "../json.ts";
import * as columns from "./columns.ts";
import { eventsV1, resourceSliceV1beta1 } from "./conversion.ts";
import { definitionOf, establishedStatus } from "./custom.ts";
import type { ResourceDefinition } from "./definition.ts";
import * as schemas from "./schemas.ts";

const v1 = [{ name: "v1" }];

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
  return {
    group: "",
    kind,
    plural,
    singular: kind.toLowerCase(),
    shortNames,
    namespaced: true,
    versions: v1,
    storage: plural,
    storedApiVersion: "v1",
    status: false,
    generation: false,
    schema: schemas.objectSchema,
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

/** The kinds that are served without a CustomResourceDefinition. */
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
      schema: schemas.nodeSchema,
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
      schema: schemas.podSchema,
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
      schema: schemas.eventSchema,
    }),
    grouped("events.k8s.io", "Event", "events", [eventsV1], {
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
      schema: schemas.eventSchema,
    }),
    grouped("coordination.k8s.io", "Lease", "leases", v1, { columns: columns.leaseColumns }),
    grouped("policy", "PodDisruptionBudget", "poddisruptionbudgets", v1, {
      shortNames: ["pdb"],
      status: true,
      generation: true,
      columns: columns.disruptionBudgetColumns,
      schema: schemas.disruptionBudgetSchema,
    }),
    grouped(
      "node.katalyst.kubewharf.io",
      "CustomNodeResource",
      "customnoderesources",
      [{ name: "v1alpha1" }],
      {
        shortNames: ["kcnr", "cnr"],
        namespaced: false,
        status: true,
        generation: true,
        custom: true,
        needsResourceVersion: true,
        columns: columns.nodeResourceColumns,
        schema: schemas.nodeResourceSchema,
      },
    ),
    ...deviceResources(),
    grouped("apiextensions.k8s.io", "CustomResourceDefinition", "customresourcedefinitions", v1, {
      shortNames: ["crd", "crds"],
      namespaced: false,
      status: true,
      generation: true,
      columns: columns.customResourceDefinitionColumns,
      schema: schemas.customResourceDefinitionSchema,
      validate: definitionOf,
      onCreate: (definition, time) => ({ ...definition, status: establishedStatus(definition, time) }),
    }),
  ];
}

function deviceResources(): ResourceDefinition[] {
  const group = "resource.k8s.io";
  return [
    grouped(
      group,
      "ResourceSlice",
      "resourceslices",
      [{ name: "v1" }, { name: "v1beta2" }, resourceSliceV1beta1],
      {
        namespaced: false,
        generation: true,
        selectable: { "spec.nodeName": ["spec", "nodeName"], "spec.driver": ["spec", "driver"] },
        columns: columns.resourceSliceColumns,
        schema: schemas.resourceSliceSchema,
      },
    ),
    grouped(group, "DeviceClass", "deviceclasses", v1, { namespaced: false, generation: true }),
    grouped(group, "ResourceClaim", "resourceclaims", v1, {
      status: true,
      schema: schemas.resourceClaimSchema,
    }),
  ];
}
