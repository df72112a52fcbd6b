import type { KubeObject } from "@nodekeeper/core/kube";
import { isObject, type Json, type JsonObject } from "./json.ts";
import { appliedFields } from "./owned-values.ts";

const maps = ["capacity", "allocatable"] as const;

/**
 * The JSON merge patch that removes from a Node's status the quantities that `manager` has applied and `fields`
 * no longer has; undefined where there are none. An apply must not do it: when nobody else is recorded
 * as an owner within a map, giving up its last owned member removes the map whole. What the kubelet wrote as it created
 * the Node is recorded for nobody, so its cpu and memory would go along.
 */
export function withdrawal(live: KubeObject, manager: string, fields: JsonObject): JsonObject | undefined {
  const owned = member(appliedFields(live, manager, "status"), "f:status");
  const wished = member(fields, "status");
  const status: JsonObject = {};
  for (const map of maps) {
    const kept = member(wished, map);
    const gone = Object.keys(member(owned, `f:${map}`))
      .filter((name) => name.startsWith("f:"))
      .map((name) => name.slice(2))
      .filter((name) => !Object.hasOwn(kept, name));
    if (gone.length > 0) status[map] = Object.fromEntries(gone.map((name) => [name, null]));
  }
  if (Object.keys(status).length === 0) return undefined;
  // The uid keeps the patch from a successor of the same name.
  return { metadata: { uid: live.metadata.uid ?? "" }, status };
}

function member(value: Json | undefined, name: string): JsonObject {
  const found = isObject(value) && Object.hasOwn(value, name) ? value[name] : undefined;
  return isObject(found) ? found : {};
}
