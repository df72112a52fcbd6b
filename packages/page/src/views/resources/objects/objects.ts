import type { ApiAnswers } from "../../../api.ts";

export type PublishedObject = ApiAnswers["objects"][number];
export type Field = ApiAnswers["objects/fields"]["items"][number];

/** "CustomNodeResource" of "node.katalyst.kubewharf.io/v1alpha1/CustomNodeResource". */
export function kindName(object: string): string {
  return object.slice(object.lastIndexOf("/") + 1);
}

/** How many things of an object are disputed, refused or can't be written. */
export function troubleCount(object: PublishedObject): number {
  const { conflicts, contested, unclaimed, quarantined, lastError } = object;
  const lists = conflicts.length + contested.length + unclaimed.length;
  return lists + Object.keys(quarantined).length + (lastError ? 1 : 0);
}

/**
 * The fields that have all words of a search in their path, value or plugins; case is ignored. All fields where the search is
 * empty.
 */
export function searchFields(fields: readonly Field[], search: string): readonly Field[] {
  const words = search.toLowerCase().split(/\s+/).filter(Boolean);
  if (words.length === 0) return fields;
  return fields.filter(({ path, value, plugin, others }) => {
    const text = [path, value, plugin, ...others].join("\n").toLowerCase();
    return words.every((word) => text.includes(word));
  });
}
