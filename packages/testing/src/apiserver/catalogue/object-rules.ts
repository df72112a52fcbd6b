import type { KubeObject } from "@nodekeeper/core/kube";
import { isLabelName, isLabelValue } from "@nodekeeper/core/lib";
import { at, isTree, type Tree } from "../json.ts";
import { invalid, type Subject } from "../status.ts";

/** A rule that an object breaks: the field, and why the API server refuses it. */
export type Problem = readonly [field: string, why: string];

// Of all annotations of an object together: TotalAnnotationSizeLimitB of apimachinery.
const MOST_ANNOTATION_BYTES = 256 * 1_024;

/** Throws a 422 with the first of the problems, if there are any. */
export function refuse(subject: Subject, problems: Iterable<Problem>): void {
  for (const [field, why] of problems) throw invalid(subject, field, why);
}

/** Yields the rules that labels and annotations break, as `ValidateObjectMeta` of apimachinery checks them. */
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

/** Returns the objects of a list at a path of own fields. */
export function treesAt(value: unknown, ...path: string[]): Tree[] {
  const list = at(value, ...path);
  return Array.isArray(list) ? list.filter(isTree) : [];
}
