import { DeviceStatusNotWritten } from "@nodekeeper/api/errors";
import {
  ApiStatusError,
  type JsonPatchOperation,
  type KubeObject,
  recordOf,
  recordsOf,
} from "@nodekeeper/core/kube";
import { codeOf, messageOf } from "@nodekeeper/core/lib";

/*
 * kube-apiserver (1.36.3 and earlier) refuses every server-side apply to the status of a claim whose opaque parameters
 * have unsorted keys: it sorts them and compares the allocation byte for byte. A JSON patch does not change them.
 */

/** Identifies an entry of `status.devices`. */
interface EntryKey {
  driver: string;
  pool: string;
  device: string;
  shareID?: string;
}

/** Returns whether the API server refused an apply as a change of the allocation, which no apply contains. */
export function isAllocationChanged(error: unknown): boolean {
  if (!(error instanceof ApiStatusError) || codeOf(error) !== "invalid") return false;
  const { causes } = error.summary;
  return (
    messageOf(error).includes("status.allocation: Invalid value") &&
    causes.some(({ message }) => message.endsWith("field is immutable"))
  );
}

/** Returns whether a manager has entries that it wrote by patches, which no apply removes. */
export function isPatched(claim: KubeObject, manager: string): boolean {
  return ownedBy(claim, manager, "Update").size > 0;
}

/** Returns whether a manager has written an entry, by apply or by patch. */
export function isOwn(claim: KubeObject, manager: string, entry: EntryKey): boolean {
  return owners(claim, manager).own.has(keyOf(entry));
}

/**
 * Returns the patch after which the manager has exactly these entries. Empty if there is nothing to change. The patch
 * fails with `conflict` if the claim changes meanwhile. Throws `DeviceStatusNotWritten` with the code `conflict` if
 * another manager has one of the entries.
 */
export function statusPatch<Entry extends EntryKey>(
  claim: KubeObject,
  manager: string,
  wanted: readonly Entry[],
): JsonPatchOperation[] {
  const { uid, resourceVersion } = claim.metadata;
  const status = recordOf(claim.status);
  const live = recordsOf(status.devices);
  const { own, others } = owners(claim, manager);
  const places = new Map(live.map((entry, at) => [keyOf(entry as unknown as EntryKey), at]));
  const added: JsonPatchOperation[] = [];
  const kept = new Set<string>();
  for (const entry of wanted) {
    const key = keyOf(entry);
    const at = places.get(key);
    if (at !== undefined && (!own.has(key) || others.has(key)))
      throw new DeviceStatusNotWritten(
        { problem: `another client has written the status of ${entry.pool}/${entry.device}` },
        { code: "conflict" },
      );
    kept.add(key);
    if (at === undefined) added.push({ op: "add", path: "/status/devices/-", value: entry });
    else if (JSON.stringify(live[at]) !== JSON.stringify(entry))
      added.push({ op: "replace", path: `/status/devices/${at}`, value: entry });
  }
  // From the end, so that the places before stay the same.
  const removed = [...places]
    .filter(([key]) => own.has(key) && !others.has(key) && !kept.has(key))
    .map(([, at]): JsonPatchOperation => ({ op: "remove", path: `/status/devices/${at}` }))
    .reverse();
  const replaced = added.filter(({ op }) => op === "replace");
  const appended = added.filter(({ op }) => op === "add");
  if (added.length + removed.length === 0) return [];
  if (appended.length > 0 && !Array.isArray(status.devices))
    appended.unshift({ op: "add", path: "/status/devices", value: [] });
  return [
    { op: "test", path: "/metadata/uid", value: uid },
    { op: "test", path: "/metadata/resourceVersion", value: resourceVersion },
    ...replaced,
    ...removed,
    ...appended,
  ];
}

function owners(claim: KubeObject, manager: string): { own: Set<string>; others: Set<string> } {
  const own = new Set<string>();
  const others = new Set<string>();
  for (const { manager: by = "", operation = "" } of claim.metadata.managedFields ?? [])
    for (const key of ownedBy(claim, by, operation)) (by === manager ? own : others).add(key);
  return { own, others };
}

function ownedBy({ metadata }: KubeObject, manager: string, operation: string): Set<string> {
  const owned = new Set<string>();
  for (const { manager: by, operation: how, subresource, fieldsV1 } of metadata.managedFields ?? []) {
    if (by !== manager || how !== operation || subresource !== "status") continue;
    const devices = recordOf(recordOf(fieldsV1)["f:status"])["f:devices"];
    for (const name of Object.keys(recordOf(devices)))
      if (name.startsWith("k:")) owned.add(keyOf(JSON.parse(name.slice(2)) as EntryKey));
  }
  return owned;
}

function keyOf({ driver, pool, device, shareID }: EntryKey): string {
  return JSON.stringify([driver, pool, device, shareID ?? ""]);
}
