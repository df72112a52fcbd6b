import { Canonical, nodesText, sameTaints } from "./canonical.ts";
import type { Device, DeviceAttribute, DevicePool, DeviceProblem, SliceSpec } from "./model.ts";

/** Parts of a slice that the API server drops in silence while the feature gate of this name is off. */
export type Feature =
  | "DRADeviceTaints"
  | "DRAPartitionableDevices"
  | "DRADeviceBindingConditions"
  | "DRAConsumableCapacity"
  | "DRAListTypeAttributes"
  | "DRANodeAllocatableResources";

/** Something that was sent and is not in the answer. */
export interface DroppedField {
  /** Absent for a field of the slice itself. */
  device?: string;
  field: string;
  /** Absent where no gate is known that explains it, as when an admission webhook changed the slice. */
  feature?: Feature;
}

const featureOfField: Record<string, Feature> = {
  taints: "DRADeviceTaints",
  consumesCounters: "DRAPartitionableDevices",
  nodes: "DRAPartitionableDevices",
  perDeviceNodeSelection: "DRAPartitionableDevices",
  sharedCounters: "DRAPartitionableDevices",
  bindsToNode: "DRADeviceBindingConditions",
  bindingConditions: "DRADeviceBindingConditions",
  bindingFailureConditions: "DRADeviceBindingConditions",
  allowMultipleAllocations: "DRAConsumableCapacity",
  nodeAllocatableResourceMappings: "DRANodeAllocatableResources",
};

/** Compares what was sent with what the API server says it stored. Empty where nothing is lost. */
export function droppedFields(desired: SliceSpec, answered: SliceSpec): DroppedField[] {
  const canonical = new Canonical();
  const dropped: DroppedField[] = [];
  if (nodesText(desired) !== nodesText(answered)) {
    const field = desired.perDeviceNodeSelection ? "perDeviceNodeSelection" : "nodeSelector";
    dropped.push(fieldOf(field));
  }
  const sets = (spec: SliceSpec) =>
    (spec.sharedCounters ?? []).map((set) => canonical.counterSetFingerprint(set)).join();
  if (sets(desired) !== sets(answered)) dropped.push(fieldOf("sharedCounters"));

  const stored = new Map((answered.devices ?? []).map((device) => [device.name, device]));
  for (const device of desired.devices ?? []) {
    const other = stored.get(device.name);
    if (!other) {
      dropped.push({ device: device.name, field: "name" });
      continue;
    }
    if (!sameTaints(device.taints, other.taints)) dropped.push(fieldOf("taints", device.name));
    if (canonical.deviceFingerprint(device) === canonical.deviceFingerprint(other)) continue;
    dropped.push(...differingFields(device, other, canonical));
  }
  return dropped;
}

/**
 * The features that may be why the API server refused a slice as invalid: without them it drops a part that the rest
 * can't do without, an attribute's only value or the choice of nodes, and blames what is left.
 */
export function featuresBehindRefusal({ perDeviceNodeSelection, devices = [] }: SliceSpec): Feature[] {
  const hasLists = devices.some(({ attributes }) => Object.values(attributes ?? {}).some(isList));
  return [
    ...(hasLists ? (["DRAListTypeAttributes"] as const) : []),
    ...(perDeviceNodeSelection ? (["DRAPartitionableDevices"] as const) : []),
  ];
}

/**
 * The pools without what the features stand for, so that they are what the API server will store and no write is
 * repeated for nothing. What would be given out wrongly without them is held back instead and named: a device that is
 * tainted against use, one that shares counters with others, a pool whose devices choose their nodes. A list
 * attribute goes altogether, for an attribute without a value is refused.
 */
export function withoutFeatures(
  pools: readonly DevicePool[],
  without: ReadonlySet<Feature>,
): { pools: readonly DevicePool[]; problems: DeviceProblem[] } {
  if (without.size === 0) return { pools, problems: [] };
  const problems: DeviceProblem[] = [];
  const kept = pools.flatMap((pool): DevicePool[] => {
    if (pool.nodes.kind === "perDevice" && without.has("DRAPartitionableDevices")) {
      problems.push({
        pool: pool.name,
        field: "perDeviceNodeSelection",
        message: heldBack("DRAPartitionableDevices"),
      });
      return [];
    }
    const devices = pool.devices.filter((device) => {
      const need = unsafeWithout(device, without);
      if (!need) return true;
      problems.push({
        pool: pool.name,
        device: device.name,
        field: need.field,
        message: heldBack(need.feature),
      });
      return false;
    });
    const sharedCounters = without.has("DRAPartitionableDevices") ? [] : pool.sharedCounters;
    return [{ ...pool, sharedCounters, devices: devices.map((device) => deviceWithout(device, without)) }];
  });
  return { pools: kept, problems };
}

/** The feature without which a device would be given out wrongly, if it is among those. */
export function unsafeWithout(
  { taints, consumesCounters }: Device,
  without: ReadonlySet<Feature>,
): { field: string; feature: Feature } | undefined {
  if (without.has("DRADeviceTaints") && taints?.some(({ effect }) => effect !== "None")) {
    return { field: "taints", feature: "DRADeviceTaints" };
  }
  if (without.has("DRAPartitionableDevices") && consumesCounters?.length) {
    return { field: "consumesCounters", feature: "DRAPartitionableDevices" };
  }
  return undefined;
}

/** Why a device is held back. */
export function heldBack(feature: Feature): string {
  return `held back: the API server does not keep it (${feature})`;
}

/** The device without what the features stand for. */
export function deviceWithout(device: Device, without: ReadonlySet<Feature>): Device {
  const less = { ...device };
  for (const key of Object.keys(less) as (keyof Device)[]) {
    const isOfNodes = key === "nodeName" || key === "nodeSelector" || key === "allNodes";
    const feature = featureOfField[isOfNodes ? "nodes" : key];
    if (feature && without.has(feature)) delete less[key];
  }
  if (without.has("DRAConsumableCapacity") && less.capacity) {
    const entries = Object.entries(less.capacity).map(([name, { value }]) => [name, { value }]);
    less.capacity = Object.fromEntries(entries);
  }
  if (without.has("DRAListTypeAttributes") && less.attributes) {
    const entries = Object.entries(less.attributes).filter(([, attribute]) => !isList(attribute));
    less.attributes = Object.fromEntries(entries);
  }
  return less;
}

function differingFields(desired: Device, answered: Device, canonical: Canonical): DroppedField[] {
  const differs = (part: Omit<Device, "name">, other: Omit<Device, "name">) =>
    canonical.deviceText({ name: "", ...part }) !== canonical.deviceText({ name: "", ...other });
  const found: DroppedField[] = [];
  for (const [name, attribute] of Object.entries(desired.attributes ?? {})) {
    const other = valueAt(answered.attributes, name);
    if (other && !differs({ attributes: { [name]: attribute } }, { attributes: { [name]: other } })) continue;
    const feature = isList(attribute) ? ({ feature: "DRAListTypeAttributes" } as const) : {};
    found.push({ device: desired.name, field: `attributes[${name}]`, ...feature });
  }
  for (const [name, capacity] of Object.entries(desired.capacity ?? {})) {
    const other = valueAt(answered.capacity, name);
    if (other && !differs({ capacity: { [name]: capacity } }, { capacity: { [name]: other } })) continue;
    const isPolicy = other && capacity.requestPolicy && !other.requestPolicy;
    found.push(
      isPolicy
        ? { device: desired.name, field: `capacity[${name}].requestPolicy`, feature: "DRAConsumableCapacity" }
        : { device: desired.name, field: `capacity[${name}]` },
    );
  }
  if (nodesText(desired) !== nodesText(answered)) found.push(fieldOf("nodes", desired.name));
  for (const key of [
    "consumesCounters",
    "bindsToNode",
    "bindingConditions",
    "bindingFailureConditions",
    "allowMultipleAllocations",
    "nodeAllocatableResourceMappings",
  ] as const) {
    if (differs({ [key]: desired[key] }, { [key]: answered[key] })) found.push(fieldOf(key, desired.name));
  }
  // Nothing is lost, but something was added.
  return found.length > 0 ? found : [{ device: desired.name, field: "name" }];
}

function fieldOf(field: string, device?: string): DroppedField {
  const feature = featureOfField[field];
  return { ...(device !== undefined && { device }), field, ...(feature && { feature }) };
}

function valueAt<Value>(record: Record<string, Value> | undefined, key: string): Value | undefined {
  return record && Object.hasOwn(record, key) ? record[key] : undefined;
}

function isList({ bools, ints, strings, versions }: DeviceAttribute): boolean {
  return Boolean(bools ?? ints ?? strings ?? versions);
}
