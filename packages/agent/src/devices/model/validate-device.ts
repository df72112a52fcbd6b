import { isDnsLabel, isLabelName, isLabelValue, quote } from "@nodekeeper/core/lib";
import type { Canonical } from "./canonical.ts";
import { isQualifiedName, isSemanticVersion } from "./field-names.ts";
import { limits } from "./limits.ts";
import type { Counters, Device, DeviceAttribute, DeviceTaint, NodeAllocatableResource } from "./model.ts";
import { checkCapacity, type Report, readQuantity } from "./validate-capacity.ts";

const taintEffects = ["None", "NoSchedule", "NoExecute"];

/**
 * Checks one device by the rules of resource.k8s.io/v1 as the API server of Kubernetes 1.37 enforces them. It follows
 * the API's documentation where that is stricter: a name has at most one slash, and timestamps are not guessed.
 */
export function checkDevice(device: Device, canonical: Canonical, report: Report): void {
  if (!isDnsLabel(device.name)) report("name", `${quote(device.name)} is not a DNS label`);
  const { attributes, capacity } = device;
  // No arrays of entries, because a driver's first message has tens of thousands of these.
  let number = 0;
  for (const _ in attributes) number++;
  for (const _ in capacity) number++;
  if (number > limits.attributesAndCapacities) {
    report(
      "attributes",
      `${number} attributes and capacities, at most ${limits.attributesAndCapacities} are allowed`,
    );
    return;
  }
  checkAttributes(attributes, report);
  for (const name in capacity) {
    const value = capacity[name]!;
    if (!isQualifiedName(name)) report(`capacity[${name}]`, notQualified(name));
    // Devices share a few quantities: a known quantity is not parsed again.
    if (!value.requestPolicy && canonical.isQuantity(value.value)) continue;
    checkCapacity(value, device.allowMultipleAllocations ?? false, (field, message) =>
      report(`capacity[${name}].${field}`, message),
    );
  }
  if (device.taints) checkTaints(device.taints, report);
  if (device.consumesCounters) checkConsumption(device.consumesCounters, report);
  checkBindingConditions(device, report);
  for (const name in device.nodeAllocatableResources) {
    checkNodeAllocatable(name, device.nodeAllocatableResources[name]!, device, report);
  }
}

/** Checks the counters of a set or of a consumption. */
export function checkCounters(counters: Counters, field: string, report: Report): void {
  const entries = Object.entries(counters);
  if (entries.length === 0) report(field, "must not be empty");
  if (entries.length > limits.countersPerSet) {
    report(field, `has ${entries.length} counters, at most ${limits.countersPerSet} are allowed`);
    return;
  }
  for (const [name, { value }] of entries) {
    if (!isDnsLabel(name)) report(`${field}[${name}]`, `${quote(name)} is not a DNS label`);
    readQuantity(value, `${field}[${name}].value`, report);
  }
}

function checkAttributes(attributes: Device["attributes"], report: Report): void {
  let values = 0;
  for (const name in attributes) {
    const attribute = attributes[name]!;
    if (!isQualifiedName(name)) report(`attributes[${name}]`, notQualified(name));
    values += checkAttribute(name, attribute, report);
  }
  if (values > limits.attributeValues) {
    report("attributes", `${values} values, at most ${limits.attributeValues} are allowed`);
  }
}

// Returns the number of values.
function checkAttribute(name: string, attribute: DeviceAttribute, report: Report): number {
  const kinds = Object.keys(attribute) as (keyof DeviceAttribute)[];
  const kind = kinds[0];
  if (kind === undefined) {
    report(`attributes[${name}]`, "has no value");
    return 1;
  }
  if (kinds.length > 1) {
    report(`attributes[${name}]`, `has more than one value: ${kinds.join(", ")}`);
    return 1;
  }
  const value = attribute[kind];
  if (!Array.isArray(value)) {
    if (typeof value === "string") checkText(value, name, kind, report);
    return 1;
  }
  if (value.length === 0) report(`attributes[${name}].${kind}`, "must not be empty");
  for (const item of value) {
    if (typeof item === "string") checkText(item, name, kind, report);
  }
  return value.length;
}

function checkText(text: string, name: string, kind: keyof DeviceAttribute, report: Report): void {
  // A shorter text can't exceed the limit in bytes.
  if (text.length * 3 > limits.attributeText) {
    const bytes = Buffer.byteLength(text);
    if (bytes > limits.attributeText) {
      report(
        `attributes[${name}].${kind}`,
        `has ${bytes} bytes, at most ${limits.attributeText} are allowed: ${quote(text)}`,
      );
    }
  }
  if ((kind === "version" || kind === "versions") && !isSemanticVersion(text)) {
    report(`attributes[${name}].${kind}`, `${quote(text)} is not a version of semver.org 2.0.0`);
  }
}

function checkTaints(taints: DeviceTaint[], report: Report): void {
  if (taints.length > limits.taints) {
    report("taints", `${taints.length} taints, at most ${limits.taints} are allowed`);
    return;
  }
  for (const [at, { key, value = "", effect, timeAdded }] of taints.entries()) {
    if (!isLabelName(key)) report(`taints[${at}].key`, `${quote(key)} is not a label name`);
    if (!isLabelValue(value)) report(`taints[${at}].value`, `${quote(value)} is not a label value`);
    if (!taintEffects.includes(effect)) {
      report(`taints[${at}].effect`, `${quote(effect)} is not one of ${taintEffects.join(", ")}`);
    }
    if (timeAdded !== undefined && !isTime(timeAdded)) {
      report(`taints[${at}].timeAdded`, `${quote(timeAdded)} is not a time`);
    }
  }
}

// RFC 3339 has years of four digits.
function isTime(text: string): boolean {
  return /^\d{4}-\d\d-\d\dT/.test(text) && !Number.isNaN(Date.parse(text));
}

function checkConsumption(consumption: NonNullable<Device["consumesCounters"]>, report: Report): void {
  if (consumption.length > limits.consumedCounterSets) {
    report(
      "consumesCounters",
      `${consumption.length} counter sets, at most ${limits.consumedCounterSets} are allowed`,
    );
    return;
  }
  const seen = new Set<string>();
  for (const [at, { counterSet, counters, compatibilityGroups = [] }] of consumption.entries()) {
    const field = `consumesCounters[${at}]`;
    checkTexts(compatibilityGroups, `${field}.compatibilityGroups`, groupRule, report);
    if (!isDnsLabel(counterSet)) report(`${field}.counterSet`, `${quote(counterSet)} is not a DNS label`);
    if (seen.has(counterSet)) report(`${field}.counterSet`, `${quote(counterSet)} is duplicated`);
    seen.add(counterSet);
    checkCounters(counters, `${field}.counters`, report);
  }
}

// Reports too many, invalid and duplicate texts. Returns false if there are too many.
function checkTexts(
  texts: string[],
  field: string,
  rule: { limit: number; what: string; kind: string; isValid: (text: string) => boolean },
  report: Report,
): boolean {
  if (texts.length > rule.limit) {
    report(field, `${texts.length} ${rule.what}, at most ${rule.limit} are allowed`);
    return false;
  }
  for (const text of texts) if (!rule.isValid(text)) report(field, `${quote(text)} is not a ${rule.kind}`);
  if (new Set(texts).size < texts.length) report(field, "must not contain duplicates");
  return true;
}

const groupRule = {
  limit: limits.compatibilityGroups,
  what: "groups",
  kind: "DNS label",
  isValid: isDnsLabel,
};
const conditionRule = {
  limit: limits.bindingConditions,
  what: "conditions",
  kind: "condition type",
  isValid: isLabelName,
};

function checkBindingConditions(device: Device, report: Report): void {
  const { bindingConditions: proceed = [], bindingFailureConditions: fail = [] } = device;
  if (proceed.length === 0 && fail.length === 0) return;
  if (proceed.length === 0 || fail.length === 0) {
    report("bindingConditions", "bindingConditions and bindingFailureConditions must be set together");
  }
  if (!checkTexts(proceed, "bindingConditions", conditionRule, report)) return;
  if (!checkTexts(fail, "bindingFailureConditions", conditionRule, report)) return;
  if (fail.some((condition) => proceed.includes(condition))) {
    report("bindingFailureConditions", "must not contain conditions of bindingConditions");
  }
}

function checkNodeAllocatable(
  name: string,
  { mapping, overhead }: NodeAllocatableResource,
  device: Device,
  report: Report,
): void {
  const field = `nodeAllocatableResources[${name}]`;
  if (!isNodeAllocatable(name)) report(field, `${quote(name)} is not a resource of the node itself`);
  if (!mapping && !overhead) report(field, "needs mapping or overhead");
  const amount = (
    text: string | undefined,
    what: string,
    isValid: (nano: bigint) => boolean,
    rule: string,
  ) => {
    if (text === undefined) return;
    const quantity = readQuantity(text, `${field}.${what}`, report);
    if (quantity && !isValid(quantity.nano)) report(`${field}.${what}`, rule);
  };
  if (mapping) {
    const { capacityKey, capacityMultiplier, deviceMultiplier } = mapping;
    const isByCapacity = capacityKey !== undefined || capacityMultiplier !== undefined;
    if (isByCapacity === (deviceMultiplier !== undefined)) {
      report(`${field}.mapping`, "needs either capacityKey with capacityMultiplier, or deviceMultiplier");
    } else if (isByCapacity && (capacityKey === undefined || capacityMultiplier === undefined)) {
      report(`${field}.mapping`, "capacityKey and capacityMultiplier must be set together");
    }
    if (capacityKey !== undefined && !Object.hasOwn(device.capacity ?? {}, capacityKey)) {
      report(`${field}.mapping.capacityKey`, `${quote(capacityKey)} is not a capacity of the device`);
    }
    const isPositive = (nano: bigint) => nano > 0n;
    amount(capacityMultiplier, "mapping.capacityMultiplier", isPositive, "must be greater than zero");
    amount(deviceMultiplier, "mapping.deviceMultiplier", isPositive, "must be greater than zero");
  }
  if (overhead) {
    const { perPod, perContainer } = overhead;
    if (perPod === undefined && perContainer === undefined) {
      report(`${field}.overhead`, "needs perPod or perContainer");
    }
    amount(perPod, "overhead.perPod", (nano) => nano >= 0n, "must not be negative");
    amount(perContainer, "overhead.perContainer", (nano) => nano >= 0n, "must not be negative");
  }
}

// Returns whether a resource of the Node's allocatable is not an extended resource: it has no domain, or one of
// Kubernetes.
function isNodeAllocatable(name: string): boolean {
  return name !== "" && (!name.includes("/") || name.includes("kubernetes.io/"));
}

function notQualified(name: string): string {
  return `${quote(name)} is not a C identifier of at most ${limits.identifier} characters, optionally prefixed by "<domain>/"`;
}
