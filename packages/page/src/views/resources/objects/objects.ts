import type { ApiAnswers } from "@nodekeeper/api/openapi";
import { bytesText } from "../../../parts/kube-quantity.ts";

export type PublishedObject = ApiAnswers["objects"][number];
export type Field = ApiAnswers["objects/fields"]["items"][number];

/** Returns "CustomNodeResource" for "node.katalyst.kubewharf.io/v1alpha1/CustomNodeResource". */
export function kindName(object: string): string {
  return object.slice(object.lastIndexOf("/") + 1);
}

/** Formats the value of a field: a quantity of bytes with its unit, "23.5 GiB"; any other as it is, JSON. */
export function valueText({ path, value }: Pick<Field, "path" | "value">): string {
  // Labels and annotations are texts.
  if (path.startsWith("metadata.")) return value;
  return bytesText(path.slice(path.lastIndexOf(".") + 1), /^"(.*)"$/.exec(value)?.[1]) ?? value;
}

/** Returns the number of problems of an object: disputed, refused, or not writable. */
export function troubleCount(object: PublishedObject): number {
  const { conflicts, contested, unclaimed, quarantined, lastError } = object;
  const lists = conflicts.length + contested.length + unclaimed.length;
  return lists + Object.keys(quarantined).length + (lastError ? 1 : 0);
}

/**
 * Returns the fields whose path, value or plugins contain all words of a search, ignoring case. An empty search matches
 * all.
 */
export function searchFields(fields: readonly Field[], search: string): readonly Field[] {
  const words = search.toLowerCase().split(/\s+/).filter(Boolean);
  if (words.length === 0) return fields;
  return fields.filter(({ path, value, plugin, others }) => {
    const text = [path, value, plugin, ...others].join("\n").toLowerCase();
    return words.every((word) => text.includes(word));
  });
}
