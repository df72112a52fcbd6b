import type * as wire from "@nodekeeper/core/gen/dra/v1alpha3/api.ts";
import { quote } from "@nodekeeper/core/lib";
import { deviceNameOf, identifierOf } from "./mapped-names.ts";
import type {
  Device,
  DeviceAttribute,
  DeviceCapacity,
  DevicePool,
  DeviceProblem,
  NamedAttribute,
  NamedInstance,
  NamedResources,
} from "./model.ts";
import { toInt64 } from "./read-fields.ts";

const MAX_REMEMBERED_NAMES = 10_000;

/** Converts a message of the 1.30 protocol to the v1alpha2 model. A model of an unknown kind becomes empty. */
export function decodeNamedResources(response: wire.NodeListAndWatchResourcesResponse): NamedResources[] {
  return response.resources.map(({ namedResources }) => ({
    instances: (namedResources?.instances ?? []).map((instance) => ({
      name: instance.name,
      attributes: instance.attributes.map(decodeAttribute),
    })),
  }));
}

/**
 * Converts the v1alpha2 model to one pool named after the node: instances of all models become devices in their order,
 * quantities become capacities, and names are mapped to the grammar of resource.k8s.io/v1. An instance with a
 * duplicated attribute, or an attribute with a quantity and another value, has no equivalent: it is omitted and
 * reported as a problem. All other rules are checked by validation.
 */
export function poolsOfNamedResources(
  models: readonly NamedResources[],
  nodeName: string,
): { pools: DevicePool[]; problems: DeviceProblem[] } {
  const problems: DeviceProblem[] = [];
  const devices: Device[] = [];
  // Cached, because all devices of a driver share a few attribute names.
  const identifiers = new Map<string, string>();
  const identifier = (name: string) => {
    const known = identifiers.get(name) ?? identifierOf(name);
    if (identifiers.size < MAX_REMEMBERED_NAMES) identifiers.set(name, known);
    return known;
  };
  for (const instance of models.flatMap((model) => model.instances)) {
    const message = clashOf(instance);
    if (message === undefined) devices.push(deviceOf(instance, identifier));
    else problems.push({ pool: nodeName, device: instance.name, field: "attributes", message });
  }
  if (models.length === 0) return { pools: [], problems };
  const pool: DevicePool = { name: nodeName, devices, sharedCounters: [] };
  return { pools: [pool], problems };
}

function clashOf(instance: NamedInstance): string | undefined {
  const seen = new Set<string>();
  for (const { name, quantity, ...rest } of instance.attributes) {
    if (seen.has(name)) return `attribute ${quote(name)} is duplicated`;
    if (quantity !== undefined && Object.keys(rest).length > 0) {
      return `attribute ${quote(name)} has more than one value`;
    }
    seen.add(name);
  }
  return undefined;
}

function deviceOf(instance: NamedInstance, identifierFor: (name: string) => string): Device {
  const attributes: [string, DeviceAttribute][] = [];
  const capacity: [string, DeviceCapacity][] = [];
  for (const { name, quantity, intSlice, stringSlice, ...scalar } of instance.attributes) {
    const identifier = identifierFor(name);
    if (quantity !== undefined) {
      capacity.push([identifier, { value: quantity }]);
      continue;
    }
    const lists = {
      ...(intSlice && { ints: intSlice.ints }),
      ...(stringSlice && { strings: stringSlice.strings }),
    };
    attributes.push([identifier, { ...scalar, ...lists }]);
  }
  return {
    name: deviceNameOf(instance.name),
    ...(attributes.length > 0 && { attributes: Object.fromEntries(attributes) }),
    ...(capacity.length > 0 && { capacity: Object.fromEntries(capacity) }),
  };
}

function decodeAttribute({ name, attributeValue }: wire.NamedResourcesAttribute): NamedAttribute {
  const attribute: NamedAttribute = { name };
  if (!attributeValue) return attribute;
  const { quantity, bool, int, intSlice, string, stringSlice, version } = attributeValue;
  if (quantity) attribute.quantity = quantity.string;
  if (bool !== undefined) attribute.bool = bool;
  if (int !== undefined) attribute.int = toInt64(int);
  if (intSlice) attribute.intSlice = { ints: intSlice.ints.map(toInt64) };
  if (string !== undefined) attribute.string = string;
  if (stringSlice) attribute.stringSlice = { strings: stringSlice.strings };
  if (version !== undefined) attribute.version = version;
  return attribute;
}
