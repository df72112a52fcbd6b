import type { KubeObject } from "@nodekeeper/core/kube";
import { at, isTree, type Tree } from "../json.ts";
import type { Column } from "./definition.ts";
import { humanDuration } from "./duration.ts";

/** NAME, the first column of most tables. */
export const nameColumn: Column = {
  name: "Name",
  type: "string",
  description: "Name of the object, unique within its namespace",
  cell: (object) => object.metadata.name,
};

export const ageColumn: Column = {
  name: "Age",
  type: "string",
  description: "Time since the object was created",
  cell: (object, now) => ageOf(object.metadata.creationTimestamp, now),
};

/** Returns the age of an RFC 3339 time as formatted by kubectl. `<unknown>` if it is not a time. */
export function ageOf(time: unknown, now: number): string {
  const since = typeof time === "string" ? Date.parse(time) : Number.NaN;
  return Number.isNaN(since) ? "<unknown>" : humanDuration(now - since);
}

/** Returns a column that shows the value at a path. */
export function valueColumn(name: string, path: string[], more: Partial<Column> = {}): Column {
  return { name, type: "string", ...more, cell: (object) => at(object, ...path) ?? "<none>" };
}

function textColumn(name: string, cell: Column["cell"], priority = 0): Column {
  return { name, type: "string", priority, cell };
}

const list = (value: unknown): Tree[] => (Array.isArray(value) ? value.filter(isTree) : []);

const ROLE = "node-role.kubernetes.io/";

function nodeStatus(node: KubeObject): string {
  const ready = list(at(node, "status", "conditions")).find((condition) => condition.type === "Ready");
  const word = ready === undefined ? "Unknown" : ready.status === "True" ? "Ready" : "NotReady";
  return at(node, "spec", "unschedulable") === true ? `${word},SchedulingDisabled` : word;
}

function nodeRoles(node: KubeObject): string {
  const labels = Object.keys(node.metadata.labels ?? {});
  const roles = labels.filter((label) => label.startsWith(ROLE)).map((label) => label.slice(ROLE.length));
  return roles.sort().join(",") || "<none>";
}

function nodeAddress(node: KubeObject, type: string): unknown {
  return list(at(node, "status", "addresses")).find((address) => address.type === type)?.address ?? "<none>";
}

export const nodeColumns: Column[] = [
  nameColumn,
  textColumn("Status", nodeStatus),
  textColumn("Roles", nodeRoles),
  ageColumn,
  valueColumn("Version", ["status", "nodeInfo", "kubeletVersion"]),
  textColumn("Internal-IP", (node) => nodeAddress(node, "InternalIP"), 1),
  valueColumn("OS-Image", ["status", "nodeInfo", "osImage"], { priority: 1 }),
  valueColumn("Kernel-Version", ["status", "nodeInfo", "kernelVersion"], { priority: 1 }),
  valueColumn("Container-Runtime", ["status", "nodeInfo", "containerRuntimeVersion"], { priority: 1 }),
];

function podReady(pod: KubeObject): string {
  const ready = list(at(pod, "status", "containerStatuses")).filter((status) => status.ready === true);
  return `${ready.length}/${list(at(pod, "spec", "containers")).length}`;
}

function podStatus(pod: KubeObject): unknown {
  if (pod.metadata.deletionTimestamp) return "Terminating";
  const waiting = list(at(pod, "status", "containerStatuses"))
    .map((status) => at(status, "state", "waiting", "reason") ?? at(status, "state", "terminated", "reason"))
    .find((reason) => reason !== undefined);
  return waiting ?? at(pod, "status", "reason") ?? at(pod, "status", "phase") ?? "Unknown";
}

function podRestarts(pod: KubeObject): string {
  const counts = list(at(pod, "status", "containerStatuses")).map((status) =>
    Number(status.restartCount ?? 0),
  );
  return String(counts.reduce((sum, count) => sum + count, 0));
}

export const podColumns: Column[] = [
  nameColumn,
  textColumn("Ready", podReady),
  textColumn("Status", podStatus),
  textColumn("Restarts", podRestarts),
  ageColumn,
  valueColumn("IP", ["status", "podIP"], { priority: 1 }),
  valueColumn("Node", ["spec", "nodeName"], { priority: 1 }),
];

function eventTarget(event: KubeObject): string {
  const { kind, name } = (at(event, "involvedObject") ?? {}) as Tree;
  return `${String(kind ?? "").toLowerCase()}/${name ?? ""}`;
}

export const eventColumns: Column[] = [
  textColumn("Last Seen", (event, now) =>
    ageOf(event.lastTimestamp ?? at(event, "series", "lastObservedTime") ?? event.eventTime, now),
  ),
  valueColumn("Type", ["type"]),
  valueColumn("Reason", ["reason"]),
  textColumn("Object", eventTarget),
  textColumn("Message", (event) => String(event.message ?? "").trim()),
];

export const namespaceColumns: Column[] = [nameColumn, valueColumn("Status", ["status", "phase"]), ageColumn];

export const leaseColumns: Column[] = [
  nameColumn,
  valueColumn("Holder", ["spec", "holderIdentity"]),
  ageColumn,
];

export const configMapColumns: Column[] = [
  nameColumn,
  {
    name: "Data",
    type: "string",
    cell: ({ data, binaryData }) =>
      Object.keys(isTree(data) ? data : {}).length + Object.keys(isTree(binaryData) ? binaryData : {}).length,
  },
  ageColumn,
];

export const nodeResourceColumns: Column[] = [
  nameColumn,
  {
    name: "Properties",
    type: "integer",
    description: "Number of node resource properties",
    cell: (object) => list(at(object, "spec", "nodeResourceProperties")).length,
  },
  {
    name: "Zones",
    type: "integer",
    description: "Number of topology zones at the top",
    cell: (object) => list(at(object, "status", "topologyZone")).length,
  },
  ageColumn,
];

export const resourceSliceColumns: Column[] = [
  nameColumn,
  valueColumn("Node", ["spec", "nodeName"]),
  valueColumn("Driver", ["spec", "driver"]),
  valueColumn("Pool", ["spec", "pool", "name"]),
  ageColumn,
];

export const disruptionBudgetColumns: Column[] = [
  nameColumn,
  textColumn("Min Available", (budget) => at(budget, "spec", "minAvailable") ?? "N/A"),
  textColumn("Max Unavailable", (budget) => at(budget, "spec", "maxUnavailable") ?? "N/A"),
  textColumn("Allowed Disruptions", (budget) => at(budget, "status", "disruptionsAllowed") ?? 0),
  ageColumn,
];

export const customResourceDefinitionColumns: Column[] = [
  nameColumn,
  { name: "Created At", type: "date", cell: (definition) => definition.metadata.creationTimestamp },
];

/** Columns of a kind that does not declare any. */
export const defaultColumns: Column[] = [nameColumn, ageColumn];
