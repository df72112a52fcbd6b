import type { KubeObject } from "@nodekeeper/core/kube";
import { compact, isTree, type MutableTree, setOwn, type Tree } from "../json.ts";
import type { ServedVersion } from "./definition.ts";

/** resource.k8s.io/v1beta1 wraps the content of each device in `basic`, unlike v1 and v1beta2. */
export const resourceSliceV1beta1: ServedVersion = {
  name: "v1beta1",
  decode: (slice) =>
    mapDevices(slice, ({ basic, ...rest }) => ({ ...rest, ...(isTree(basic) ? basic : {}) })),
  encode: (slice) => mapDevices(slice, ({ name, ...basic }) => ({ name, basic })),
};

function mapDevices(slice: KubeObject, convert: (device: Tree) => Tree): KubeObject {
  const { spec } = slice;
  if (!isTree(spec) || !Array.isArray(spec.devices)) return slice;
  const devices = spec.devices.map((device) => (isTree(device) ? convert(device) : device));
  return { ...slice, spec: { ...spec, devices } };
}

// Field names of an Event in its two groups: [core v1, events.k8s.io/v1].
const eventFields: [string, string][] = [
  ["message", "note"],
  ["involvedObject", "regarding"],
  ["source", "deprecatedSource"],
  ["firstTimestamp", "deprecatedFirstTimestamp"],
  ["lastTimestamp", "deprecatedLastTimestamp"],
  ["count", "deprecatedCount"],
  ["reportingComponent", "reportingController"],
];

/** events.k8s.io/v1, converted to the storage of core Events. */
export const eventsV1: ServedVersion = {
  name: "v1",
  decode: (event) => ({ ...renameFields(event, toCore), kind: "Event" }),
  encode: (event) => renameFields(event, fromCore),
};

const toCore = new Map(eventFields.map(([core, modern]) => [modern, core]));
const fromCore = new Map(eventFields);

function renameFields(event: KubeObject, names: Map<string, string>): KubeObject {
  const renamed: MutableTree = {};
  for (const [field, value] of Object.entries(event)) setOwn(renamed, names.get(field) ?? field, value);
  return compact(renamed) as KubeObject;
}
