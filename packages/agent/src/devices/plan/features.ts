import { Canonical, fieldsText, sameTaints } from "../model/canonical.ts";
import type { CheckedDevice, CheckedPools } from "../model/checked.ts";
import { checkedDevice } from "../model/checked-device.ts";
import { bitsOf, type Feature, featuresOfFields, isList } from "../model/feature-bits.ts";
import type { Device, DeviceProblem, PoolFields, SliceSpec } from "../model/model.ts";
import { gatedFields } from "./gated-fields.ts";

// Limits the dropped fields that are reported.
const MOST_DROPPED = 100;

/** A reported field that the API server does not store. */
export interface DroppedField {
  /** Undefined in a comparison of one slice. */
  pool?: string;
  /** Undefined for a field of the slice itself. */
  device?: string;
  field: string;
  /** Undefined if no known gate explains it, as when an admission webhook changed the slice. */
  feature?: Feature;
}

const featureOfField: Readonly<Record<string, Feature>> = {
  taints: "DRADeviceTaints",
  consumesCounters: "DRAPartitionableDevices",
  sharedCounters: "DRAPartitionableDevices",
  bindsToNode: "DRADeviceBindingConditions",
  bindingConditions: "DRADeviceBindingConditions",
  bindingFailureConditions: "DRADeviceBindingConditions",
  allowMultipleAllocations: "DRAConsumableCapacity",
  nodeAllocatableResources: "DRANodeAllocatableResources",
  partitionTypeAttribute: "DRAPartitionableDevicesType",
  skipNodeOperations: "DRAOptionalNodeOperations",
};

/** Compares a sent slice with the API server's answer. Returns the fields that were not stored. */
export function droppedFields(desired: SliceSpec, answered: SliceSpec): DroppedField[] {
  const canonical = new Canonical();
  const dropped: DroppedField[] = [];
  for (const field of ["partitionTypeAttribute", "skipNodeOperations"] as const) {
    if (fieldsText({ [field]: desired[field] }) !== fieldsText({ [field]: answered[field] }))
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

/** Pools reduced by the features that the API server lacks. */
export interface WithoutFeatures extends CheckedPools {
  /** Fields omitted from published devices and from pools; at most 100. */
  dropped: readonly DroppedField[];
}

/**
 * Returns the pools without the fields of the features, as the API server will store them, so that no write is repeated
 * to no effect. A device that would be allocated on different terms without a field (`GatedField.isUnsafe`) is
 * quarantined, with a problem for each such field. A list attribute is omitted entirely, because the server refuses an
 * attribute without a value.
 * @param unknown features that the server may drop: no device that is unsafe without them is published
 * @param reduced devices without the same features, from earlier calls
 */
export function withoutFeatures(
  checked: CheckedPools,
  without: ReadonlySet<Feature>,
  unknown: ReadonlySet<Feature> = new Set(),
  reduced: WeakMap<CheckedDevice, CheckedDevice> = new WeakMap(),
): WithoutFeatures {
  const missing = bitsOf(without);
  const affected = missing | bitsOf(unknown);
  if (affected === 0) return { ...checked, dropped: [] };
  const problems: DeviceProblem[] = [];
  const dropped: DroppedField[] = [];
  const drop = (pool: string, field: Omit<DroppedField, "pool">) => {
    if (dropped.length < MOST_DROPPED) dropped.push({ pool, ...field });
  };
  let quarantined = 0;
  const canonical = new Canonical();
  const pools = checked.pools.map((pool) => {
    const fields = fieldsWithout(pool.fields, without, (field) => drop(pool.name, field));
    const isDroppingCounters = without.has("DRAPartitionableDevices") && pool.counterSets.length > 0;
    if (isDroppingCounters) drop(pool.name, fieldOf("sharedCounters"));
    const counterSets = isDroppingCounters ? [] : pool.counterSets;
    if (!pool.devices.some(({ features }) => features & affected)) return { ...pool, fields, counterSets };
    const devices = pool.devices.flatMap((device): CheckedDevice[] => {
      if ((device.features & affected) === 0) return [device];
      const unsafe = unsafeFields(device.device, pool.fields, without, unknown);
      for (const { field, message } of unsafe)
        problems.push({ pool: pool.name, device: device.name, field, message });
      if (unsafe.length > 0) quarantined++;
      if ((device.features & missing) === 0) return unsafe.length > 0 ? [] : [device];
      if (dropped.length < MOST_DROPPED) {
        for (const { field, feature, isUnsafe } of gatedFields(device.device, pool.fields, without))
          if (!isUnsafe) drop(pool.name, { device: device.name, field, feature });
      }
      if (unsafe.length > 0) return [];
      const less = reduced.get(device) ?? checkedDevice(deviceWithout(device.device, without), canonical);
      reduced.set(device, less);
      return [less];
    });
    return { ...pool, fields, counterSets, devices };
  });
  return {
    pools,
    problems: problems.length > 0 ? checked.problems.concat(problems) : checked.problems,
    quarantined: checked.quarantined + quarantined,
    dropped,
  };
}

// Returns the unsafe fields that the server drops. If there are none, those that it may drop.
function unsafeFields(
  device: Device,
  pool: PoolFields,
  without: ReadonlySet<Feature>,
  unknown: ReadonlySet<Feature>,
): { field: string; message: string }[] {
  const among = (features: ReadonlySet<Feature>, messageOf: (feature: Feature) => string) =>
    gatedFields(device, pool, features).flatMap(({ field, feature, isUnsafe }) =>
      isUnsafe ? [{ field, message: messageOf(feature) }] : [],
    );
  const lacking = among(without, notKept);
  return lacking.length > 0 ? lacking : among(unknown, notKnown);
}

function notKept(feature: Feature): string {
  return `quarantined: the API server does not store the field, which needs the feature ${feature}; without it the device would be allocated on other terms`;
}

function notKnown(feature: Feature): string {
  return `quarantined: it is not known whether the API server stores the field, which needs the feature ${feature}`;
}

function fieldsWithout(
  fields: PoolFields,
  without: ReadonlySet<Feature>,
  onDropped: (field: DroppedField) => void,
): PoolFields {
  if (!(featuresOfFields(fields) & bitsOf(without))) return fields;
  const kept = Object.entries(fields).filter(([key]) => {
    const isKept = !without.has(featureOfField[key]!);
    if (!isKept) onDropped(fieldOf(key));
    return isKept;
  });
  return Object.fromEntries(kept);
}

function deviceWithout(device: Device, without: ReadonlySet<Feature>): Device {
  const less = { ...device };
  for (const key of Object.keys(less) as (keyof Device)[]) {
    const feature = featureOfField[key];
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
  for (const key of [
    "consumesCounters",
    "bindsToNode",
    "bindingConditions",
    "bindingFailureConditions",
    "allowMultipleAllocations",
    "nodeAllocatableResources",
  ] as const) {
    if (!differs({ [key]: desired[key] }, { [key]: answered[key] })) continue;
    if (key === "consumesCounters" && answered.consumesCounters?.length) {
      const field = "consumesCounters.compatibilityGroups";
      found.push({ device: desired.name, field, feature: "DRADeviceCompatibilityGroups" });
    } else found.push(fieldOf(key, desired.name));
  }
  // No field was dropped, but one was added.
  return found.length > 0 ? found : [{ device: desired.name, field: "name" }];
}

function fieldOf(field: string, device?: string): DroppedField {
  const feature = featureOfField[field];
  return { ...(device !== undefined && { device }), field, ...(feature && { feature }) };
}

function valueAt<Value>(record: Record<string, Value> | undefined, key: string): Value | undefined {
  return record && Object.hasOwn(record, key) ? record[key] : undefined;
}
