import type { KubeObject, ObjectMeta } from "@nodekeeper/core/kube";
import { rawNumber } from "@nodekeeper/core/lib";
import { Canonical, fieldsText } from "./canonical.ts";
import type { StoredSlice } from "./checked.ts";
import type { Device, DeviceAttribute, Int64, SliceSpec } from "./model.ts";

/** Versions of resource.k8s.io whose slices have pools, most recent first. */
export const sliceVersions = ["v1", "v1beta2", "v1beta1"] as const;

export type SliceVersion = (typeof sliceVersions)[number];

/** Encodes a ResourceSlice in one API version. */
export function encodeSlice(version: SliceVersion, metadata: ObjectMeta, spec: SliceSpec): KubeObject {
  return {
    apiVersion: `resource.k8s.io/${version}`,
    kind: "ResourceSlice",
    metadata,
    spec: encodeSpec(version, spec),
  };
}

/** Returns the spec of a slice from the API server. Its fields are empty if the object has no spec. */
export function decodeSpec(version: SliceVersion, object: KubeObject): SliceSpec {
  const raw = (typeof object.spec === "object" ? (object.spec ?? {}) : {}) as Partial<SliceSpec>;
  const { driver, pool, nodeName, devices, sharedCounters } = raw;
  const { partitionTypeAttribute, skipNodeOperations, nodeSelector, allNodes, perDeviceNodeSelection } = raw;
  return {
    driver: driver ?? "",
    pool: {
      name: pool?.name ?? "",
      generation: pool?.generation ?? 0,
      resourceSliceCount: pool?.resourceSliceCount ?? 0,
    },
    ...(nodeName && { nodeName }),
    ...(nodeSelector && { nodeSelector }),
    ...(allNodes && { allNodes }),
    ...(perDeviceNodeSelection && { perDeviceNodeSelection }),
    ...(partitionTypeAttribute && { partitionTypeAttribute }),
    ...(skipNodeOperations && { skipNodeOperations }),
    ...(devices && { devices: version === "v1beta1" ? devices.map(fromBasic) : devices }),
    ...(sharedCounters && { sharedCounters }),
  };
}

/** Reduces a slice from the API server to what planning needs. */
export function storedSlice(
  version: SliceVersion,
  object: KubeObject,
  canonical = new Canonical(),
): StoredSlice {
  const spec = decodeSpec(version, object);
  return {
    metadata: object.metadata,
    name: object.metadata.name ?? "",
    driver: spec.driver,
    pool: spec.pool,
    fields: fieldsText(spec),
    devices: (spec.devices ?? []).map((device) => ({
      name: device.name,
      fingerprint: canonical.deviceFingerprint(device),
      ...(device.taints?.length && { taints: device.taints }),
    })),
    counterSets: (spec.sharedCounters ?? []).map((set) => canonical.counterSetFingerprint(set)),
  };
}

/** Returns whether two values are the same JSON. Undefined fields count as absent. */
export function isSameJson(a: unknown, b: unknown): boolean {
  if (a === b) return true;
  if (typeof a !== "object" || typeof b !== "object" || a === null || b === null) return false;
  if (Array.isArray(a)) {
    return Array.isArray(b) && a.length === b.length && a.every((item, at) => isSameJson(item, b[at]));
  }
  const [one, other] = [a as Record<string, unknown>, b as Record<string, unknown>];
  for (const key in one) if (!isSameJson(one[key], other[key])) return false;
  for (const key in other) if (other[key] !== undefined && one[key] === undefined) return false;
  return true;
}

/** Returns an integer that JSON writes digit for digit. */
export function encodeInt(value: Int64): unknown {
  return typeof value === "bigint" ? rawNumber(value.toString()) : value;
}

function encodeSpec(version: SliceVersion, spec: SliceSpec): Record<string, unknown> {
  const { devices, ...rest } = spec;
  if (!devices?.length) return rest;
  const encoded = devices.map(withExactIntegers);
  return { ...rest, devices: version === "v1beta1" ? encoded.map(toBasic) : encoded };
}

function toBasic({ name, ...basic }: Device): { name: string; basic: Omit<Device, "name"> } {
  return { name, basic };
}

function fromBasic(device: Device): Device {
  const { name, basic } = device as { name: string; basic?: Omit<Device, "name"> };
  return { name, ...basic };
}

function withExactIntegers(device: Device): Device {
  if (!device.attributes) return device;
  const attributes = Object.entries(device.attributes);
  if (!attributes.some(([, attribute]) => hasBigInteger(attribute))) return device;
  const encoded = attributes.map(([name, attribute]) => [
    name,
    {
      ...attribute,
      ...(attribute.int !== undefined && { int: encodeInt(attribute.int) }),
      ...(attribute.ints && { ints: attribute.ints.map(encodeInt) }),
    },
  ]);
  return { ...device, attributes: Object.fromEntries(encoded) };
}

function hasBigInteger({ int, ints }: DeviceAttribute): boolean {
  return typeof int === "bigint" || (ints?.some((item) => typeof item === "bigint") ?? false);
}
