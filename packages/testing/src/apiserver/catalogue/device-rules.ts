import { isDnsLabel, isDnsSubdomain, isLabelName } from "@nodekeeper/core/lib";
import { at, isTree, type Tree } from "../json.ts";
import { type Problem, taintProblems, treesAt } from "./object-rules.ts";

// Of k8s.io/api/resource/v1.
const MOST_FIELDS = 32;
const MOST_VALUES = 48;
const MOST_TAINTS = 16;
const MOST_BINDING_CONDITIONS = 4;
const MOST_COUNTERS = 32;
const MOST_CONSUMED_SETS = 2;
const MOST_BYTES = 64;
const effects: readonly unknown[] = ["NoSchedule", "NoExecute", "None"];
const lists = ["bools", "ints", "strings", "versions"] as const;
const valueTypes = ["bool", "int", "string", "version", ...lists] as const;
const deviceScopes = ["nodeName", "nodeSelector", "allNodes"] as const;
const semver =
  /^(0|[1-9]\d*)(\.(0|[1-9]\d*)){2}(-(0|[1-9]\d*|\d*[A-Za-z-][\dA-Za-z-]*)(\.(0|[1-9]\d*|\d*[A-Za-z-][\dA-Za-z-]*))*)?(\+[\dA-Za-z-]+(\.[\dA-Za-z-]+)*)?$/;

/**
 * Yields the validation errors of a device in a ResourceSlice. Source: `validateDevice` of pkg/apis/resource/validation.
 * Independent of the agent's own validation, because tests compare the two.
 */
export function* deviceProblems(field: string, device: Tree, isPerDevice: boolean): Generator<Problem> {
  yield* fieldProblems(field, device);
  yield* taintsProblems(`${field}.taints`, treesAt(device, "taints"));
  yield* bindingProblems(field, device);
  yield* consumptionProblems(`${field}.consumesCounters`, treesAt(device, "consumesCounters"));
  const given = deviceScopes.filter((scope) => device[scope] !== undefined).length;
  if (given !== (isPerDevice ? 1 : 0))
    yield [field, `Invalid value: ${given} scopes although perDeviceNodeSelection is ${isPerDevice}`];
}

/** Yields the validation errors of the counters of a counter set, or of those that a device consumes. */
export function* counterProblems(field: string, { counters }: Tree): Generator<Problem> {
  const names = Object.keys(isTree(counters) ? counters : {});
  if (names.length === 0) yield [field, "Required value"];
  if (names.length > MOST_COUNTERS) yield [field, `Too many: must have at most ${MOST_COUNTERS} items`];
  for (const name of names) if (!isDnsLabel(name)) yield [field, `Invalid value: "${name}"`];
}

/** Returns whether a device has taints, counters or list attributes, which lower the maximum number of devices in a slice. */
export function isAdvanced(device: Tree): boolean {
  const hasLists = entriesOf(device, "attributes").some(([, value]) =>
    lists.some((type) => at(value, type) !== undefined),
  );
  return hasLists || treesAt(device, "taints").length + treesAt(device, "consumesCounters").length > 0;
}

/** Returns whether a text is the name of a driver: a DNS subdomain of at most 63 characters, in any case. */
export function isDriverName(text: string): boolean {
  return text.length <= 63 && isDnsSubdomain(text.toLowerCase());
}

function* fieldProblems(field: string, device: Tree): Generator<Problem> {
  const attributes = entriesOf(device, "attributes");
  const capacity = entriesOf(device, "capacity");
  if (attributes.length + capacity.length > MOST_FIELDS)
    yield [
      field,
      `Invalid value: the total number of attributes and capacities must not exceed ${MOST_FIELDS}`,
    ];
  for (const [name] of capacity)
    if (!isFieldName(name)) yield [`${field}.capacity`, `Invalid value: "${name}"`];
  let values = 0;
  for (const [name, value] of attributes) {
    if (!isFieldName(name)) yield [`${field}.attributes`, `Invalid value: "${name}"`];
    values += yield* valueProblems(`${field}.attributes[${name}]`, value);
  }
  if (values > MOST_VALUES)
    yield [field, `Invalid value: the total number of attribute values must not exceed ${MOST_VALUES}`];
}

/** Returns the number of values of the attribute. */
function* valueProblems(field: string, attribute: unknown): Generator<Problem, number> {
  const types = valueTypes.filter((type) => at(attribute, type) !== undefined);
  if (types.length !== 1) yield [field, "Invalid value: exactly one value must be specified"];
  const [type = "string"] = types;
  const given = at(attribute, type);
  const values: unknown[] = Array.isArray(given) ? given : [given];
  if (values.length === 0) yield [`${field}.${type}`, "Invalid value: must not be empty if specified"];
  for (const value of values) {
    if (typeof value !== "string") continue;
    if (Buffer.byteLength(value) > MOST_BYTES)
      yield [`${field}.${type}`, `Too long: may not be more than ${MOST_BYTES} bytes`];
    if (type.startsWith("version") && !semver.test(value))
      yield [
        `${field}.${type}`,
        `Invalid value: "${value}": must be a string compatible with semver.org spec 2.0.0`,
      ];
  }
  return values.length;
}

function* taintsProblems(field: string, taints: readonly Tree[]): Generator<Problem> {
  if (taints.length > MOST_TAINTS) yield [field, `Too many: must have at most ${MOST_TAINTS} items`];
  for (const [index, taint] of taints.entries()) yield* taintProblems(`${field}[${index}]`, taint, effects);
}

function* bindingProblems(field: string, device: Tree): Generator<Problem> {
  const proceed = textsOf(device.bindingConditions);
  const fail = textsOf(device.bindingFailureConditions);
  if ((proceed.length === 0) !== (fail.length === 0))
    yield [field, "Invalid value: bindingConditions and bindingFailureConditions must be set together"];
  for (const [list, conditions] of Object.entries({
    bindingConditions: proceed,
    bindingFailureConditions: fail,
  })) {
    if (conditions.length > MOST_BINDING_CONDITIONS)
      yield [`${field}.${list}`, `Too many: must have at most ${MOST_BINDING_CONDITIONS} items`];
    if (!conditions.every(isLabelName)) yield [`${field}.${list}`, "Invalid value: must be a condition type"];
    if (new Set(conditions).size < conditions.length) yield [`${field}.${list}`, "Duplicate value"];
  }
  if (fail.some((condition) => proceed.includes(condition)))
    yield [`${field}.bindingFailureConditions`, "Invalid value: must not be one of bindingConditions"];
}

function* consumptionProblems(field: string, consumed: readonly Tree[]): Generator<Problem> {
  if (consumed.length > MOST_CONSUMED_SETS)
    yield [field, `Too many: must have at most ${MOST_CONSUMED_SETS} items`];
  const known = new Set<unknown>();
  for (const [index, consumption] of consumed.entries()) {
    const { counterSet } = consumption;
    if (!isDnsLabel(String(counterSet ?? "")))
      yield [`${field}[${index}].counterSet`, `Invalid value: "${counterSet}"`];
    if (known.has(counterSet)) yield [`${field}[${index}]`, `Duplicate value: "${counterSet}"`];
    known.add(counterSet);
    yield* counterProblems(`${field}[${index}].counters`, consumption);
  }
}

function entriesOf(device: Tree, field: string): [string, unknown][] {
  const map = device[field];
  return isTree(map) ? Object.entries(map) : [];
}

function textsOf(list: unknown): string[] {
  return Array.isArray(list) ? list.map(String) : [];
}

/** A C identifier of at most 32 characters, which may follow a domain. */
function isFieldName(name: string): boolean {
  const slash = name.indexOf("/");
  const identifier = name.slice(slash + 1);
  return (
    (slash < 0 || isDriverName(name.slice(0, slash))) && /^[A-Za-z_][A-Za-z0-9_]{0,31}$/.test(identifier)
  );
}
