import { Canonical, fieldsText, sameTaints } from "../model/canonical.ts";
import type { CheckedDevice, CheckedPools } from "../model/checked.ts";
import { checkedDevice } from "../model/checked-device.ts";
import { bitsOf, type Feature, featuresOfFields, isList } from "../model/feature-bits.ts";
import type { Device, DeviceProblem, PoolFields, SliceSpec } from "../model/model.ts";

/** Something that was sent and is not in the answer. */
export interface DroppedField {
  /** Absent for a field of the slice itself. */
  device?: string;
  field: string;
  /** Absent where no gate is known that explains it, as when an admission webhook changed the slice. */
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

/** Compares what was sent with what the API server answers that it stored. Empty where nothing is lost. */
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

/**
 * The pools without what the features stand for, so that they are what the API server will store and no write is
 * repeated for nothing. What would be allocated wrongly without them is quarantined instead: a device that is tainted
 * against use, one that shares counters with others. A list attribute is left out altogether, for an attribute without
 * a value is refused.
 * @param unknown features of which it is not known whether the server keeps them: nothing that would be allocated
 * wrongly without them is published
 * @param reduced devices without the same features, from earlier calls
 */
export function withoutFeatures(
  checked: CheckedPools,
  without: ReadonlySet<Feature>,
  unknown: ReadonlySet<Feature> = new Set(),
  reduced: WeakMap<CheckedDevice, CheckedDevice> = new WeakMap(),
): CheckedPools {
  const missing = bitsOf(without);
  const affected = missing | bitsOf(unknown);
  if (affected === 0) return checked;
  const problems: DeviceProblem[] = [];
  let quarantined = 0;
  const canonical = new Canonical();
  const pools = checked.pools.map((pool) => {
    const fields = fieldsWithout(pool.fields, without);
    const counterSets = without.has("DRAPartitionableDevices") ? [] : pool.counterSets;
    if (!pool.devices.some(({ features }) => features & affected)) return { ...pool, fields, counterSets };
    const devices = pool.devices.flatMap((device): CheckedDevice[] => {
      if ((device.features & affected) === 0) return [device];
      const lacking = unsafeWithout(device.device, without);
      const doubted = lacking ?? unsafeWithout(device.device, unknown);
      if (doubted) {
        quarantined++;
        const message = (lacking ? notKept : notKnown)(doubted.feature);
        problems.push({ pool: pool.name, device: device.name, field: doubted.field, message });
        return [];
      }
      if ((device.features & missing) === 0) return [device];
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
  };
}

/** The feature without which a device would be allocated wrongly, if it is among those. */
export function unsafeWithout(
  { taints, consumesCounters = [] }: Device,
  without: ReadonlySet<Feature>,
): { field: string; feature: Feature } | undefined {
  if (without.has("DRADeviceTaints") && taints?.some(({ effect }) => effect !== "None")) {
    return { field: "taints", feature: "DRADeviceTaints" };
  }
  if (without.has("DRAPartitionableDevices") && consumesCounters.length > 0) {
    return { field: "consumesCounters", feature: "DRAPartitionableDevices" };
  }
  const hasGroups = consumesCounters.some(({ compatibilityGroups }) => compatibilityGroups?.length);
  if (without.has("DRADeviceCompatibilityGroups") && hasGroups) {
    return { field: "consumesCounters.compatibilityGroups", feature: "DRADeviceCompatibilityGroups" };
  }
  return undefined;
}

function notKept(feature: Feature): string {
  return `quarantined: the API server does not keep it (${feature})`;
}

function notKnown(feature: Feature): string {
  return `quarantined: it is not known whether the API server keeps it (${feature})`;
}

function fieldsWithout(fields: PoolFields, without: ReadonlySet<Feature>): PoolFields {
  if (!(featuresOfFields(fields) & bitsOf(without))) return fields;
  const kept = Object.entries(fields).filter(([key]) => !without.has(featureOfField[key]!));
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
