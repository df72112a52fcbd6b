import type { KubeObject } from "@nodekeeper/core/kube";
import { isLabelName, isLabelValue } from "@nodekeeper/core/lib";
import { at, isTree, type Tree } from "../json.ts";
import { invalid, type Subject } from "../status.ts";

/** A validation error: the field, and why the API server rejects it. */
export type Problem = readonly [field: string, why: string];

// Limit of the total size of an object's annotations: TotalAnnotationSizeLimitB of apimachinery.
const MOST_ANNOTATION_BYTES = 256 * 1_024;

/** Throws a 422 with the first error. Does nothing if there is none. */
export function refuse(subject: Subject, problems: Iterable<Problem>): void {
  for (const [field, why] of problems) throw invalid(subject, field, why);
}

/** Yields the validation errors of labels and annotations. Source: `ValidateObjectMeta` of apimachinery. */
export function* metadataProblems({ metadata }: KubeObject): Generator<Problem> {
  for (const [key, value] of Object.entries(metadata.labels ?? {})) {
    if (!isLabelName(key)) yield ["metadata.labels", `Invalid value: "${key}": name part is not valid`];
    if (!isLabelValue(String(value)))
      yield ["metadata.labels", `Invalid value: "${value}": a valid label is required`];
  }
  let bytes = 0;
  for (const [key, value] of Object.entries(metadata.annotations ?? {})) {
    if (!isLabelName(key.toLowerCase()))
      yield ["metadata.annotations", `Invalid value: "${key}": name part is not valid`];
    bytes += Buffer.byteLength(key) + Buffer.byteLength(String(value));
  }
  if (bytes > MOST_ANNOTATION_BYTES)
    yield ["metadata.annotations", `Too long: may not be more than ${MOST_ANNOTATION_BYTES} bytes`];
}

/** Yields the validation errors of one taint, of a Node or of a device. */
export function* taintProblems(
  field: string,
  { key, value = "", effect }: Tree,
  effects: readonly unknown[],
): Generator<Problem> {
  if (!isLabelName(String(key))) yield [`${field}.key`, `Invalid value: "${key}": name part is not valid`];
  if (!isLabelValue(String(value)))
    yield [`${field}.value`, `Invalid value: "${value}": a valid label is required`];
  if (!effects.includes(effect)) yield [`${field}.effect`, `Unsupported value: "${effect}"`];
}

/** Returns the objects of a list at a path of own fields. */
export function treesAt(value: unknown, ...path: string[]): Tree[] {
  const list = at(value, ...path);
  return Array.isArray(list) ? list.filter(isTree) : [];
}
