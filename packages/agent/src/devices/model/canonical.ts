import { hash } from "node:crypto";
import { parseQuantity } from "@nodekeeper/core/lib";
import type {
  CounterSet,
  Counters,
  Device,
  DeviceAttribute,
  DeviceCapacity,
  DeviceTaint,
  NodeAllocatableResource,
  PoolFields,
} from "./model.ts";

const MAX_REMEMBERED_QUANTITIES = 10_000;

/**
 * Texts and fingerprints that are equal exactly where the API server sees no difference: keys sorted, quantities by
 * value, what is empty or false by default as if absent. Remembers the quantities it has read, up to a bound; one
 * object serves one message or one watch.
 *
 * Integers beyond 2^53 are compared as the nearest double, for so the API server's answers are read.
 */
export class Canonical {
  readonly #quantities = new Map<string, string>();

  /** Of everything but the taints, 128 bits or more. */
  deviceFingerprint(device: Device): string {
    return fingerprintOf(this.deviceText(device));
  }

  counterSetFingerprint(set: CounterSet): string {
    return fingerprintOf(JSON.stringify([set.name, this.#counters(set.counters)]));
  }

  /** Parts that are absent, empty or false leave no trace. */
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
    if (device.bindsToNode) parts.push("bindsToNode");
    add("bindingConditions", device.bindingConditions ?? []);
    add("bindingFailureConditions", device.bindingFailureConditions ?? []);
    if (device.allowMultipleAllocations) parts.push("allowMultipleAllocations");
    add("nodeAllocatable", entries(device.nodeAllocatableResources, this.#nodeAllocatable));
    return JSON.stringify(parts);
  }

  /** Whether a text is a quantity. */
  isQuantity(text: string): boolean {
    return !this.quantity(text).startsWith('"');
  }

  /** The value in nanos; what is no quantity stays as it is. */
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

/** Equal where the pools' fields mean the same. */
export function fieldsText({ partitionTypeAttribute = "", skipNodeOperations = [] }: PoolFields): string {
  if (partitionTypeAttribute === "" && skipNodeOperations.length === 0) return "";
  return JSON.stringify([partitionTypeAttribute, skipNodeOperations.toSorted()]);
}

/** Whether what is stored serves for the desired taints. A time that the desired one does not name may be any. */
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

/** Whether two taints are equal apart from their times. */
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
  if (int !== undefined) return Number(int);
  if (bool !== undefined) return bool;
  if (ints) return ["ints", ints.map(Number)];
  if (strings) return ["strings", strings];
  if (versions) return ["versions", versions];
  return ["bools", bools ?? []];
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
