import {
  FieldType,
  GetReportContentResponse,
  type ReportField,
} from "@nodekeeper/core/gen/reporterplugin/v1alpha1/api.ts";
import type { GroupVersionKind } from "@nodekeeper/core/kube";
import {
  completed,
  isLabelValue,
  isQuantity,
  messageOf,
  parseQuantity,
  quote,
  type StepMeter,
  type Steps,
} from "@nodekeeper/core/lib";
import {
  isObject,
  type Json,
  type JsonObject,
  normalizing,
  numberText,
  reportMeter,
  typeName,
} from "./json.ts";
import {
  isExtendedResource,
  type JsonShape,
  type KindPolicy,
  kindKey,
  OBJECT_BUDGET_BYTES,
  type Part,
  refusedMetadataKey,
} from "./kinds.ts";
import { Merge } from "./merge-values.ts";
import { parsingExactly } from "./parse-json.ts";
import { storedBytes } from "./stored-bytes.ts";

/** A validated field of a plugin's report. */
export interface ContentField {
  kind: GroupVersionKind;
  /** The object's `kindKey`. */
  object: string;
  part: Part;
  /** JSON name of the field. */
  name: string;
  /** Normalized value. */
  value: Json;
  /** Approximate size in the stored object, in bytes. */
  bytes: number;
}

export const problemReasons = ["kind", "part", "name", "json", "type", "refused", "limit"] as const;
export type ProblemReason = (typeof problemReasons)[number];

/** Part of a plugin's report that is not published. Shown in the log, a metric and `plugins list`. */
export interface ContentProblem {
  reason: ProblemReason;
  /** Location and reason: "field Status.TopologyZone of ...: not JSON: ...". */
  message: string;
}

/** Validated report of a plugin; the input of the merge. */
export interface PluginContent {
  fields: readonly ContentField[];
  problems: readonly ContentProblem[];
}

/** Contents by plugin. */
export type Contents = ReadonlyMap<string, PluginContent>;

export const noContent: PluginContent = { fields: [], problems: [] };

const WHOLE_UNIT = 1_000_000_000n;
// Limit of the total size of annotations. Source: apimachinery pkg/api/validation/objectmeta.go,
// TotalAnnotationSizeLimitB.
const MAX_ANNOTATION_BYTES = 256 * 1024;
const MAX_FIELDS = 1_000;
const MAX_PROBLEMS = 50;
// Two bytes of JSON can take two hundred bytes of memory once parsed.
const MAX_CONTAINERS = 200_000;
// Merging duplicate values copies the ones merged before.
const MAX_COPIES = 100_000;

const parts: Readonly<Record<number, Part>> = {
  [FieldType.Spec]: "spec",
  [FieldType.Status]: "status",
  [FieldType.Metadata]: "metadata",
};

/** Runs `parsingContent` to completion. */
export function parseContent(
  response: GetReportContentResponse,
  policies: ReadonlyMap<string, KindPolicy>,
  previous?: PluginContent,
): PluginContent {
  return completed(parsingContent(response, policies, previous));
}

/**
 * Validates a plugin's message field by field. An invalid field is reported as a problem. Its value in `previous`, if
 * any, is kept, so that one invalid message does not withdraw it.
 */
export function* parsingContent(
  response: GetReportContentResponse,
  policies: ReadonlyMap<string, KindPolicy>,
  previous: PluginContent = noContent,
): Steps<PluginContent> {
  const meter = reportMeter();
  const fields = new Map<string, ContentField>();
  const problems: ContentProblem[] = [];
  let seen = 0;
  let containers = 0;
  const report = (reason: ProblemReason, message: string) => {
    if (problems.length < MAX_PROBLEMS) problems.push({ reason, message });
  };

  let where = "";
  const onConflict = (place: string) =>
    report("name", `${where}: reported twice with different values at ${place}; the last one is published`);
  const merge = new Merge({ onConflict, meter, mostCopies: MAX_COPIES });

  for (const [at, content] of response.content.entries()) {
    const kind = content.groupVersionKind;
    if (!kind?.kind || !kind.version) {
      report("kind", `content ${at} has no groupVersionKind`);
      continue;
    }
    const object = kindKey(kind);
    const policy = policies.get(object);
    if (!policy) {
      report("kind", `kind ${quote(object)} is not published: it is not listed in reporting.additionalKinds`);
      continue;
    }
    for (const raw of content.field) {
      if (++seen > MAX_FIELDS) {
        report("limit", `more than ${MAX_FIELDS} fields`);
        break;
      }
      const part = parts[raw.fieldType];
      const name = jsonName(raw.fieldName);
      where = `field ${part ?? raw.fieldType}.${quote(raw.fieldName)} of ${object}`;
      if (!part) {
        report("part", `${where}: unknown field type ${raw.fieldType} (0 Spec, 1 Status, 2 Metadata)`);
        continue;
      }
      if (!name) {
        report(
          "name",
          `${where}: a field name must be at most 253 letters and digits and start with a letter`,
        );
        continue;
      }
      const id = `${object} ${part}.${name}`;
      try {
        if (raw.value.length > OBJECT_BUDGET_BYTES) {
          const limit = `${OBJECT_BUDGET_BYTES / 1024} KiB`;
          throw new FieldError(
            "limit",
            `${raw.value.length} bytes, more than the limit for an object (${limit})`,
          );
        }
        containers += countContainers(raw.value);
        if (containers > MAX_CONTAINERS)
          throw new FieldError("limit", `the report has more than ${MAX_CONTAINERS} JSON objects and lists`);
        // Large values start a new step.
        if (meter.spend(raw.value.length >> 6)) yield;
        const reportHere: Report = (reason, message) => report(reason, `${where}: ${message}`);
        const value = yield* parsingField(raw, { part, name, policy }, meter, reportHere);
        if (value === undefined) continue;
        const path = `${part}.${name}`;
        const single = yield* merge.withoutDuplicates(value, path, name);
        const merged = yield* merge.values(fields.get(id)?.value, single, path, name);
        if (meter.spend(raw.value.length >> 6)) yield;
        const bytes = name.length + storedBytes(merged);
        fields.set(id, { kind: policy.kind, object, part, name, value: merged, bytes });
      } catch (error) {
        report(error instanceof FieldError ? error.reason : "json", `${where}: ${messageOf(error)}`);
        const last = previous.fields.find((field) => `${field.object} ${field.part}.${field.name}` === id);
        if (last) fields.set(id, last);
      }
    }
  }
  return { fields: [...fields.values()], problems };
}

const fieldTypes = { spec: FieldType.Spec, status: FieldType.Status, metadata: FieldType.Metadata } as const;

/** Encodes validated content as a GetReportContentResponse. */
export function encodeContent({ fields }: PluginContent): Uint8Array {
  const encoder = new TextEncoder();
  const content = [...Map.groupBy(fields, ({ object }) => object).values()].map((ofOne) => ({
    groupVersionKind: ofOne[0]!.kind,
    field: ofOne.map(({ part, name, value }) => ({
      fieldType: fieldTypes[part],
      fieldName: name,
      value: encoder.encode(JSON.stringify(value)),
    })),
  }));
  return GetReportContentResponse.encode({ content }).finish();
}

class FieldError extends Error {
  readonly reason: ProblemReason;
  constructor(reason: ProblemReason, message: string) {
    super(message);
    this.reason = reason;
  }
}

type Report = (reason: ProblemReason, message: string) => void;

// Returns undefined for null, which Go sends for nil slices and maps.
function* parsingField(
  raw: ReportField,
  { part, name, policy }: { part: Part; name: string; policy: KindPolicy },
  meter: StepMeter,
  report: Report,
): Steps<Json | undefined> {
  if (!(part in policy.fields)) {
    throw new FieldError("refused", `plugins are not allowed to report the ${part} of this kind`);
  }
  const allowed = policy.fields[part];
  if (allowed && !allowed.includes(name)) {
    throw new FieldError("refused", `plugins are allowed to report only ${allowed.join(", ")} here`);
  }
  const value = yield* parsingJson(raw.value, meter);
  if (value === null) return undefined;
  const shape = policy.shapes[`${part}.${name}`];
  if (shape) checkShape(value, shape);
  if (part === "metadata") {
    if (name === "annotations") checkAnnotationSize(value as JsonObject);
    return keepMembers(value as JsonObject, report, (key, text) => metadataProblem(name, key, text));
  }
  if (shape === "quantities") {
    return keepMembers(value as JsonObject, report, (key, quantity) =>
      quantityProblem(key, quantity, policy),
    );
  }
  return value;
}

function* parsingJson(bytes: Uint8Array, meter: StepMeter): Steps<Json> {
  if (bytes.length === 0) return null;
  let value: Json;
  try {
    value = yield* parsingExactly(bytes, meter);
  } catch (error) {
    // Errors of exceeded limits are reported unchanged.
    if (!(error instanceof SyntaxError) && !(error instanceof TypeError)) throw error;
    throw new FieldError("json", `not JSON: ${messageOf(error).slice(0, 200)}`);
  }
  return yield* normalizing(value, meter);
}

// Also counts brackets in strings. The limit is far above what reports need.
function countContainers(bytes: Uint8Array): number {
  let count = 0;
  for (const byte of bytes) if (byte === 0x5b || byte === 0x7b) count++;
  return count;
}

function checkShape(value: Json, shape: JsonShape): void {
  const wanted = shape === "strings" || shape === "quantities" ? "object" : shape;
  const found = typeName(value);
  if (found !== wanted) throw new FieldError("type", `must be ${wanted}, is ${found}`);
  if (shape !== "array") return;
  const bad = (value as Json[]).findIndex((item) => !isObject(item));
  if (bad >= 0)
    throw new FieldError("type", `item ${bad} must be object, is ${typeName((value as Json[])[bad]!)}`);
}

// Drops invalid members, because the server would reject the whole object for one invalid label.
function keepMembers(
  value: JsonObject,
  report: Report,
  problemOf: (key: string, member: Json) => string | undefined,
): JsonObject {
  const kept: JsonObject = {};
  for (const [key, member] of Object.entries(value)) {
    const problem = problemOf(key, member);
    if (problem) report("refused", `${quote(key)} ${problem}`);
    else kept[key] = member;
  }
  return kept;
}

function checkAnnotationSize(annotations: JsonObject): void {
  let bytes = 0;
  for (const [key, text] of Object.entries(annotations))
    bytes += Buffer.byteLength(key) + Buffer.byteLength(String(text));
  if (bytes > MAX_ANNOTATION_BYTES) {
    throw new FieldError("limit", `annotations have ${bytes} bytes, the limit is ${MAX_ANNOTATION_BYTES}`);
  }
}

function metadataProblem(field: string, key: string, value: Json): string | undefined {
  const refused = refusedMetadataKey(key);
  if (refused) return refused;
  if (typeof value !== "string") return `must be a string, is ${typeName(value)}`;
  if (field === "labels" && !isLabelValue(value))
    return `has the value ${quote(value)}, which is not a valid label value`;
  return undefined;
}

function quantityProblem(key: string, value: Json, policy: KindPolicy): string | undefined {
  if (policy.extendedResourcesOnly && !isExtendedResource(key)) return "is not an extended resource";
  const text = typeof value === "string" ? value : numberText(value);
  if (!isQuantity(text)) return `is not a quantity: ${quote(JSON.stringify(value))}`;
  const { nano } = parseQuantity(text);
  if (nano < 0n) return `is negative: ${quote(text)}`;
  // Extended resources are integers. Source: kubernetes pkg/apis/core/validation, ValidateResourceQuantityValue.
  if (nano % WHOLE_UNIT !== 0n) return `must be a whole number, is ${quote(text)}`;
  if (overflows(nano / WHOLE_UNIT))
    return `is refused by the API server, whose check of it overflows (above 9223372036854775): ${quote(text)}`;
  return undefined;
}

// To check that an extended resource is an integer, kube-apiserver computes its milli-value as an int64. It overflows
// above 9223372036854775 units, and most quantities then appear fractional; 2^63-1 does not. Some notations of such a
// quantity are accepted nevertheless, such as "10P" but not "10000000000000000". The result is undefined according to
// apimachinery pkg/api/resource, Quantity.MilliValue.
function overflows(units: bigint): boolean {
  return BigInt.asIntN(64, units * 1_000n) % 1_000n !== 0n;
}

/**
 * Returns the JSON name of a field for its Go or JSON name. Leading capitals become lower case, except the last of
 * several if a lower-case letter follows: "TopologyZone" to "topologyZone", "UID" to "uid", "CPUInfo" to "cpuInfo".
 * Returns undefined if `name` is not a valid field name.
 */
export function jsonName(name: string): string | undefined {
  if (name.length > 253 || !/^[A-Za-z][A-Za-z0-9]*$/.test(name)) return undefined;
  const capitals = /^[A-Z]+/.exec(name)?.[0].length ?? 0;
  const small =
    capitals > 1 && capitals < name.length && /[a-z]/.test(name[capitals]!) ? capitals - 1 : capitals;
  const result = name.slice(0, small).toLowerCase() + name.slice(small);
  // Names of Object.prototype could be mistaken for members.
  return result in Object.prototype ? undefined : result;
}
