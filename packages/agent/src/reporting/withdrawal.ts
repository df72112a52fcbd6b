import type { KubeObject } from "@nodekeeper/core/kube";
import { isObject, type Json, type JsonObject } from "./json.ts";
import { appliedFields, hasField } from "./owned-values.ts";

const maps = ["capacity", "allocatable"] as const;

/**
 * Returns the JSON merge patch that removes from a Node's status the quantities that `manager` applied, no other manager
 * owns, and `fields` no longer contains. Undefined if there are none. An apply cannot remove them: if no other manager
 * owns a member of a map, giving up the last owned member removes the whole map. Fields that the kubelet set when it
 * created the Node have no owner, so its cpu and memory would be removed too. An apply gives up the quantities that
 * another manager owns too: it leaves them in place.
 */
export function withdrawal(live: KubeObject, manager: string, fields: JsonObject): JsonObject | undefined {
  const owned = member(appliedFields(live, manager, "status"), "f:status");
  const desired = member(fields, "status");
  const others = (live.metadata.managedFields ?? []).filter((entry) => entry.manager !== manager);
  const isShared = (map: string, name: string) =>
    others.some((entry) => hasField(entry, ["f:status", `f:${map}`, `f:${name}`]));
  const status: JsonObject = {};
  for (const map of maps) {
    const kept = member(desired, map);
    const removed = Object.keys(member(owned, `f:${map}`))
      .filter((name) => name.startsWith("f:"))
      .map((name) => name.slice(2))
      .filter((name) => !Object.hasOwn(kept, name) && !isShared(map, name));
    if (removed.length > 0) status[map] = Object.fromEntries(removed.map((name) => [name, null]));
  }
  if (Object.keys(status).length === 0) return undefined;
  // With the UID, the patch fails if the Node was recreated under the same name.
  return { metadata: { uid: live.metadata.uid ?? "" }, status };
}

function member(value: Json | undefined, name: string): JsonObject {
  const found = isObject(value) && Object.hasOwn(value, name) ? value[name] : undefined;
  return isObject(found) ? found : {};
}
