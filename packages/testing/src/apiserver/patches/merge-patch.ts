import { isTree, type MutableTree, own, setOwn } from "../json.ts";

/** Applies a JSON merge patch (RFC 7396): null removes a field, maps are merged, other values are replaced. */
export function mergePatch(value: unknown, patch: unknown): unknown {
  if (!isTree(patch)) return patch;
  const merged: MutableTree = isTree(value) ? { ...value } : {};
  for (const [field, change] of Object.entries(patch)) {
    if (change === null) delete merged[field];
    else setOwn(merged, field, mergePatch(own(merged, field), change));
  }
  return merged;
}
