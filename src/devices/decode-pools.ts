import type * as wire from "../gen/nodekeeper/devices/v1alpha1/api.ts";
import type {
  Counters,
  Device,
  DeviceAttribute,
  DeviceCapacity,
  DeviceProblem,
  DeviceTaint,
  Int64,
  NodeSelector,
  NodeSelectorRequirement,
  PoolNodes,
} from "./model.ts";
import type { PoolOf } from "./validate.ts";

/** A message as pools. Nothing is checked but what the model can't hold: two choices of nodes in one pool. */
export function decodePools(
  response: wire.ListAndWatchDevicesResponse,
  nodeName: string,
): { pools: PoolOf<Device>[]; problems: DeviceProblem[] } {
  return decodePoolsBy(response.pools, nodeName, decodeDevice);
}

/** `decodePools` for devices in any form, given what decodes one. */
export function decodePoolsBy<Raw, Result>(
  from: readonly (Omit<wire.Pool, "devices"> & { devices: readonly Raw[] })[],
  nodeName: string,
  decode: (device: Raw) => Result,
): { pools: PoolOf<Result>[]; problems: DeviceProblem[] } {
  const pools: PoolOf<Result>[] = [];
  const problems: DeviceProblem[] = [];
  for (const pool of from) {
    const name = pool.name || nodeName;
    const nodes = decodeNodes(pool);
    if (!nodes) {
      const message = "only one of nodeSelector, allNodes and perDeviceNodes may be set";
      problems.push({ pool: name, field: "nodes", message });
      continue;
    }
    pools.push({
      name,
      nodes,
      devices: pool.devices.map(decode),
      sharedCounters: pool.sharedCounters.map((set) => ({
        name: set.name,
        counters: decodeCounters(set.counters),
      })),
    });
  }
  return { pools, problems };
}

/** The integer as a number where that is exact. */
export function toInt64(value: bigint): Int64 {
  const number = Number(value);
  return Number.isSafeInteger(number) ? number : value;
}

function decodeNodes(
  pool: Pick<wire.Pool, "nodeSelector" | "allNodes" | "perDeviceNodes">,
): PoolNodes | undefined {
  const choices: PoolNodes[] = [];
  if (pool.nodeSelector) choices.push({ kind: "selector", selector: decodeSelector(pool.nodeSelector) });
  if (pool.allNodes) choices.push({ kind: "allNodes" });
  if (pool.perDeviceNodes) choices.push({ kind: "perDevice" });
  return choices.length > 1 ? undefined : (choices[0] ?? { kind: "thisNode" });
}

/** One device of a message. */
export function decodeDevice(from: wire.Device): Device {
  const device: Device = { name: from.name };
  const attributes = Object.entries(from.attributes);
  if (attributes.length > 0) device.attributes = mapValues(attributes, decodeAttribute);
  const capacity = Object.entries(from.capacity);
  if (capacity.length > 0) device.capacity = mapValues(capacity, decodeCapacity);
  if (from.taints.length > 0) device.taints = from.taints.map(decodeTaint);
  if (from.consumesCounters.length > 0) {
    device.consumesCounters = from.consumesCounters.map(({ counterSet, counters }) => ({
      counterSet,
      counters: decodeCounters(counters),
    }));
  }
  if (from.nodeName !== "") device.nodeName = from.nodeName;
  if (from.nodeSelector) device.nodeSelector = decodeSelector(from.nodeSelector);
  if (from.allNodes) device.allNodes = true;
  if (from.bindsToNode) device.bindsToNode = true;
  if (from.bindingConditions.length > 0) device.bindingConditions = from.bindingConditions;
  if (from.bindingFailureConditions.length > 0)
    device.bindingFailureConditions = from.bindingFailureConditions;
  if (from.allowMultipleAllocations) device.allowMultipleAllocations = true;
  const mappings = Object.entries(from.nodeAllocatableMappings);
  if (mappings.length > 0) {
    device.nodeAllocatableResourceMappings = mapValues(mappings, ({ capacityKey, allocationMultiplier }) => ({
      ...(capacityKey !== "" && { capacityKey }),
      ...(allocationMultiplier !== "" && { allocationMultiplier }),
    }));
  }
  return device;
}

function decodeAttribute(from: wire.Attribute): DeviceAttribute {
  const attribute: DeviceAttribute = {};
  if (from.bool !== undefined) attribute.bool = from.bool;
  if (from.int !== undefined) attribute.int = toInt64(from.int);
  if (from.string !== undefined) attribute.string = from.string;
  if (from.version !== undefined) attribute.version = from.version;
  if (from.bools) attribute.bools = from.bools.values;
  if (from.ints) attribute.ints = from.ints.values.map(toInt64);
  if (from.strings) attribute.strings = from.strings.values;
  if (from.versions) attribute.versions = from.versions.values;
  return attribute;
}

function decodeCapacity(from: wire.Capacity): DeviceCapacity {
  const policy = from.requestPolicy;
  if (!policy) return { value: from.value };
  const range = policy.validRange;
  return {
    value: from.value,
    requestPolicy: {
      ...(policy.default !== "" && { default: policy.default }),
      ...(policy.validValues.length > 0 && { validValues: policy.validValues }),
      ...(range && {
        validRange: {
          ...(range.min !== "" && { min: range.min }),
          ...(range.max !== "" && { max: range.max }),
          ...(range.step !== "" && { step: range.step }),
        },
      }),
    },
  };
}

function decodeTaint(from: wire.Taint): DeviceTaint {
  const taint: DeviceTaint = { key: from.key, effect: from.effect };
  if (from.value !== "") taint.value = from.value;
  if (from.timeAdded !== 0n) taint.timeAdded = wholeSeconds(from.timeAdded);
  return taint;
}

// A time that no calendar knows stays as its number, for validation to refuse.
function wholeSeconds(milliseconds: bigint): string {
  const date = new Date(Math.floor(Number(milliseconds) / 1000) * 1000);
  return Number.isNaN(date.getTime()) ? `${milliseconds}` : date.toISOString().replace(".000Z", "Z");
}

function decodeCounters(from: Record<string, string>): Counters {
  return mapValues(Object.entries(from), (value) => ({ value }));
}

function decodeSelector(from: wire.NodeSelector): NodeSelector {
  return {
    nodeSelectorTerms: from.terms.map((term) => ({
      ...(term.matchExpressions.length > 0 && {
        matchExpressions: term.matchExpressions.map(decodeRequirement),
      }),
      ...(term.matchFields.length > 0 && { matchFields: term.matchFields.map(decodeRequirement) }),
    })),
  };
}

function decodeRequirement(from: wire.NodeSelectorRequirement): NodeSelectorRequirement {
  const { key, operator, values } = from;
  return { key, operator, ...(values.length > 0 && { values }) };
}

// fromEntries and not assignment: a key may be "__proto__".
function mapValues<From, To>(entries: [string, From][], convert: (from: From) => To): Record<string, To> {
  return Object.fromEntries(entries.map(([key, value]) => [key, convert(value)]));
}
