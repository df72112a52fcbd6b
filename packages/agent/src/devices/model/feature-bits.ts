import type { CheckedDevice, CheckedPools } from "./checked.ts";
import type { Device, DeviceAttribute, DeviceTaint, PoolFields } from "./model.ts";

/** Parts of a slice that the API server silently drops while the feature gate of this name is disabled. */
export type Feature =
  | "DRADeviceTaints"
  | "DRAPartitionableDevices"
  | "DRADeviceCompatibilityGroups"
  | "DRADeviceBindingConditions"
  | "DRAConsumableCapacity"
  | "DRAListTypeAttributes"
  | "DRANodeAllocatableResources"
  | "DRAPartitionableDevicesType"
  | "DRAOptionalNodeOperations";

/** A set of features is a number with these bits. */
const bits: Readonly<Record<Feature, number>> = {
  DRADeviceTaints: 1,
  DRAPartitionableDevices: 2,
  DRADeviceCompatibilityGroups: 4,
  DRADeviceBindingConditions: 8,
  DRAConsumableCapacity: 16,
  DRAListTypeAttributes: 32,
  DRANodeAllocatableResources: 64,
  DRAPartitionableDevicesType: 128,
  DRAOptionalNodeOperations: 256,
};

/** Returns the features that a device needs, as bits. */
export function featuresOf(device: Device): number {
  let features = 0;
  if (device.taints?.length) features |= bits.DRADeviceTaints;
  if (device.consumesCounters?.length) {
    features |= bits.DRAPartitionableDevices;
    if (device.consumesCounters.some(({ compatibilityGroups }) => compatibilityGroups?.length))
      features |= bits.DRADeviceCompatibilityGroups;
  }
  if (device.bindsToNode || device.bindingConditions?.length) features |= bits.DRADeviceBindingConditions;
  if (device.allowMultipleAllocations) features |= bits.DRAConsumableCapacity;
  for (const name in device.attributes) {
    if (isList(device.attributes[name]!)) features |= bits.DRAListTypeAttributes;
  }
  if (device.nodeAllocatableResources) features |= bits.DRANodeAllocatableResources;
  return features;
}

/** Returns the features that a pool's fields need, as bits. */
export function featuresOfFields({ partitionTypeAttribute, skipNodeOperations }: PoolFields): number {
  return (
    (partitionTypeAttribute === undefined ? 0 : bits.DRAPartitionableDevicesType) |
    (skipNodeOperations?.length ? bits.DRAOptionalNodeOperations : 0)
  );
}

/** Returns all features that the pools need. */
export function featuresIn({ pools }: { pools: readonly CheckedPools["pools"][number][] }): Feature[] {
  let all = 0;
  for (const { devices, counterSets, fields } of pools) {
    all |= featuresOfFields(fields);
    if (counterSets.length > 0) all |= bits.DRAPartitionableDevices;
    // Not `of`: see PlanMemory.
    for (let at = 0; at < devices.length; at++) all |= devices[at]!.features;
  }
  return (Object.keys(bits) as Feature[]).filter((feature) => (all & bits[feature]) !== 0);
}

/** Returns whether a device needs the feature. */
export function needs({ features }: Pick<CheckedDevice, "features">, feature: Feature): boolean {
  return (features & bits[feature]) !== 0;
}

/** Returns the taints of a device. Undefined if its features show that it has none. */
export function taintsOf(checked: CheckedDevice): DeviceTaint[] | undefined {
  return needs(checked, "DRADeviceTaints") ? checked.device.taints : undefined;
}

/** Returns the features as bits. */
export function bitsOf(features: ReadonlySet<Feature>): number {
  let all = 0;
  for (const feature of features) all |= bits[feature];
  return all;
}

/** Returns whether an attribute is a list of values. */
export function isList({ bools, ints, strings, versions }: DeviceAttribute): boolean {
  return Boolean(bools ?? ints ?? strings ?? versions);
}
