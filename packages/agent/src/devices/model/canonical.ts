import { hash } from "node:crypto";
import { parseQuantity } from "@nodekeeper/core/lib";
import type {
  CounterSet,
  Counters,
  Device,
  DeviceAttribute,
  DeviceCapacity,
  DeviceNodes,
  DeviceTaint,
  Int64,
  NodeAllocatableResource,
  NodeSelectorRequirement,
  PoolFields,
} from "./model.ts";

const MAX_REMEMBERED_QUANTITIES = 10_000;

/**
 * Texts and fingerprints that are equal exactly if the API server sees no difference: keys are sorted, quantities
 * compared by value, and empty values and default falses count as absent. Caches up to 10,000 quantities. Use one
 * object per message or watch.
 */
export class Canonical {
  readonly #quantities = new Map<string, string>();

  /** Fingerprint of everything but the taints, at least 128 bits. */
  deviceFingerprint(device: Device): string {
    return fingerprintOf(this.deviceText(device));
  }

  counterSetFingerprint(set: CounterSet): string {
    return fingerprintOf(JSON.stringify([set.name, this.#counters(set.counters)]));
  }

  /** Omits parts that are absent, empty or false. */
  deviceText(device: Device): string {
    const parts: unknown[] = [device.name];
    const add = (name: string, part: unknown[]) => {
      if (part.length > 0) parts.push(name, part);
    };
    add("attributes", entries(device.attributes, attributeValue));
    add("capacity", entries(device.capacity, this.#capacity));
    for (const { counterSet, counters, compatibilityGroups = [] } of device.consumesCounters ?? []) {
      add("consumes", [counterSet, this.#counters(counters), ...compatibilityGroups]);
    }
    const nodes = nodesText(device);
    if (nodes !== "") parts.push("nodes", nodes);
    if (device.bindsToNode) parts.push("bindsToNode");
    add("bindingConditions", device.bindingConditions ?? []);
    add("bindingFailureConditions", device.bindingFailureConditions ?? []);
    if (device.allowMultipleAllocations) parts.push("allowMultipleAllocations");
    add("nodeAllocatable", entries(device.nodeAllocatableResources, this.#nodeAllocatable));
    return JSON.stringify(parts);
  }

  /** Returns whether a string is a quantity. */
  isQuantity(text: string): boolean {
    return !this.quantity(text).startsWith('"');
  }

  /** Returns the value in nanos. A string that is not a quantity is returned as JSON. */
  quantity(text: string): string {
    const known = this.#quantities.get(text);
    if (known !== undefined) return known;
    const canonical = canonicalQuantity(text);
    if (this.#quantities.size < MAX_REMEMBERED_QUANTITIES) this.#quantities.set(text, canonical);
    return canonical;
  }

  readonly #capacity = ({ value, requestPolicy }: DeviceCapacity): unknown => {
    if (!requestPolicy) return this.quantity(value);
    const { default: fallback, validValues, validRange } = requestPolicy;
    const range = validRange && [validRange.min, validRange.max, validRange.step];
    return [
      this.quantity(value),
      this.#optional(fallback),
      (validValues ?? []).map((text) => this.quantity(text)),
      range?.map((text) => this.#optional(text)) ?? [],
    ];
  };

  readonly #nodeAllocatable = ({ mapping, overhead }: NodeAllocatableResource): unknown => [
    mapping && [
      mapping.capacityKey ?? "",
      this.#optional(mapping.capacityMultiplier),
      this.#optional(mapping.deviceMultiplier),
    ],
    overhead && [this.#optional(overhead.perPod), this.#optional(overhead.perContainer)],
  ];

  #counters(counters: Counters): unknown {
    return entries(counters, ({ value }) => this.quantity(value));
  }

  #optional(text: string | undefined): string {
    return text === undefined ? "" : this.quantity(text);
  }
}

/** Returns a text that is equal if the pools' fields mean the same. */
export function fieldsText({
  partitionTypeAttribute = "",
  skipNodeOperations = [],
  perDeviceNodeSelection,
  ...nodes
}: PoolFields): string {
  const where = perDeviceNodeSelection ? "perDevice" : nodesText({ ...nodes, nodeName: undefined });
  if (partitionTypeAttribute === "" && skipNodeOperations.length === 0 && where === "") return "";
  return JSON.stringify([partitionTypeAttribute, skipNodeOperations.toSorted(), where]);
}

function nodesText({ nodeName = "", nodeSelector, allNodes = false }: Undefinable<DeviceNodes>): string {
  if (nodeName === "" && !nodeSelector && !allNodes) return "";
  const requirements = (list: NodeSelectorRequirement[] = []) =>
    list.map(({ key, operator, values = [] }) => [key, operator, values]);
  const terms = (nodeSelector?.nodeSelectorTerms ?? []).map(({ matchExpressions, matchFields }) => [
    requirements(matchExpressions),
    requirements(matchFields),
  ]);
  return JSON.stringify([nodeName, terms, allNodes]);
}

type Undefinable<Type> = { [Key in keyof Type]?: Type[Key] | undefined };

/** Returns whether stored taints satisfy the desired ones. If a desired taint has no time, any stored time does. */
export function sameTaints(desired: DeviceTaint[] | undefined, stored: DeviceTaint[] | undefined): boolean {
  if (!desired?.length || !stored?.length) return (desired?.length ?? 0) === (stored?.length ?? 0);
  if (desired.length !== stored.length) return false;
  return desired.every((taint, at) => {
    const other = stored[at]!;
    return (
      sameTaint(taint, other) && (taint.timeAdded === undefined || sameTime(taint.timeAdded, other.timeAdded))
    );
  });
}

/** Returns whether two taints are equal except for their times. */
export function sameTaint(a: DeviceTaint, b: DeviceTaint): boolean {
  return a.key === b.key && (a.value ?? "") === (b.value ?? "") && a.effect === b.effect;
}

function sameTime(a: string, b: string | undefined): boolean {
  return a === b || (b !== undefined && Date.parse(a) === Date.parse(b));
}

function attributeValue(attribute: DeviceAttribute): unknown {
  const { bool, int, string, version, bools, ints, strings, versions } = attribute;
  if (string !== undefined) return ["s", string];
  if (version !== undefined) return ["v", version];
  if (int !== undefined) return int64Text(int);
  if (bool !== undefined) return bool;
  if (ints) return ["ints", ints.map(int64Text)];
  if (strings) return ["strings", strings];
  if (versions) return ["versions", versions];
  return ["bools", bools ?? []];
}

/** Returns an integer for use in compared texts, without loss. */
export function int64Text(value: Int64): number | string {
  return typeof value === "bigint" ? value.toString() : value;
}

function entries<Value>(record: Record<string, Value> | undefined, convert: (value: Value) => unknown) {
  if (!record) return [];
  return Object.keys(record)
    .sort()
    .map((key) => [key, convert(record[key]!)]);
}

function canonicalQuantity(text: string): string {
  try {
    return parseQuantity(text).nano.toString();
  } catch {
    return JSON.stringify(text);
  }
}

function fingerprintOf(text: string): string {
  return hash("sha256", text, "base64url").slice(0, 22);
}
