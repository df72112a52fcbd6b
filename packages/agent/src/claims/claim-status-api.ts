import { createHash } from "node:crypto";
import { DeviceStatusNotWritten } from "@nodekeeper/api/errors";
import {
  type ApiResource,
  ApiStatusError,
  type KubeObject,
  recordOf,
  recordsOf,
} from "@nodekeeper/core/kube";
import { codeOf, messageOf, type NodekeeperError } from "@nodekeeper/core/lib";
import { type AllocatedDevice, allocationOf } from "./allocation.ts";
import { ClaimReader, type ClaimReference, type ClaimStatusClient, missingClaim } from "./claim-reader.ts";
import { isAllocationChanged, isOwn, isPatched, statusPatch } from "./claim-status-patch.ts";
import type { StatusCondition, StatusEntry } from "./device-status.ts";

const LONGEST_MANAGER = 128;

/**
 * Returns the field manager of a driver's entries. It differs by node, because a claim may have devices that several
 * nodes share.
 */
export function statusManager(driver: string, nodeName: string): string {
  const name = `nodekeeper/${driver}/${nodeName}`;
  if (name.length <= LONGEST_MANAGER) return name;
  const hash = createHash("sha256").update(nodeName).digest("base64url").slice(0, 16);
  return `nodekeeper/${driver}/${hash}`;
}

/**
 * The result of an apply. "removed": no entries remain. "dropped": the API server did not store all entries.
 * "kept": nothing was written.
 */
export type StatusOutcome = "stored" | "removed" | "dropped" | "kept";

/** Reads ResourceClaims and writes `status.devices`: by server-side apply, otherwise by JSON patch. */
export class ClaimStatusApi {
  readonly #client: ClaimStatusClient;
  readonly #reader: ClaimReader;

  constructor(client: ClaimStatusClient) {
    this.#client = client;
    // Data of the driver may have the keys that the default parser handles.
    this.#reader = new ClaimReader(client, JSON.parse);
  }

  /**
   * Replaces all entries of this field manager in a claim. Returns the outcome. Conditions keep their
   * `lastTransitionTime` unless their status has changed. If `wanted` is a function, it receives the live claim and
   * returns the entries, or undefined to write nothing; they are then not written if the claim changes meanwhile.
   *
   * Throws `notFound` if the claim does not exist or was replaced, and `DeviceStatusNotWritten` with the
   * code `forbidden` (missing permission), `invalid` (permission possibly missing, or a field is forbidden)
   * or `conflict` (another client owns a field). Other errors are the client's: `conflict` if it changed.
   */
  async apply(
    claim: ClaimReference,
    wanted: readonly StatusEntry[] | ((live: KubeObject) => readonly StatusEntry[] | undefined),
    { manager, now }: { manager: string; now: number },
    signal: AbortSignal,
  ): Promise<StatusOutcome> {
    const { namespace, name, uid } = claim;
    const found = await this.#reader.read(claim, signal);
    const entries = typeof wanted === "function" ? wanted(found) : wanted;
    if (!entries) return "kept";
    const live = entriesOf(found);
    const devices = entries.map((entry) => timed(entry, find(live, entry), now));
    const options = { subresource: "status", fieldManager: manager, signal };
    const patched = async (resource: ApiResource) => {
      const patch = statusPatch(found, manager, devices);
      if (patch.length === 0) return found;
      return await this.#client.jsonPatch(resource, name, patch, { ...options, namespace });
    };
    // An empty status would still be a field of ours.
    const status = devices.length === 0 ? {} : { status: { devices } };
    const { resourceVersion = "" } = found.metadata;
    const version = typeof wanted === "function" ? { resourceVersion } : {};
    const body = { metadata: { namespace, name, uid, ...version }, ...status };
    const written = await this.#reader.inServedVersion(signal, async (resource) => {
      try {
        if (isPatched(found, manager)) return await patched(resource);
        return await this.#client.apply(resource, body, options).catch((error) => {
          if (!isAllocationChanged(error)) throw error;
          return patched(resource);
        });
      } catch (error) {
        if (codeOf(error) === "notFound") throw missingClaim(error, resource, name);
        throw refusalOf(error) ?? error;
      }
    });
    const stored = entriesOf(written);
    if (entries.length === 0) return "removed";
    return entries.every((entry) => find(stored, entry) !== undefined) ? "stored" : "dropped";
  }
}

/** Returns a driver's allocated devices that have binding conditions and a status that this field manager wrote. */
export function boundDevices(claim: KubeObject, driver: string, manager: string): AllocatedDevice[] {
  if (!recordOf(claim.status).allocation) return [];
  const entries = entriesOf(claim);
  return allocationOf(claim, driver).devices.filter(({ pool, device, shareId, bindingConditions }) => {
    const entry = { driver, pool, device, ...(shareId ? { shareID: shareId } : {}) };
    return bindingConditions && find(entries, entry) && isOwn(claim, manager, entry);
  });
}

function entriesOf(claim: KubeObject): Record<string, unknown>[] {
  return recordsOf(recordOf(claim.status).devices);
}

function find(live: readonly Record<string, unknown>[], { driver, pool, device, shareID }: StatusEntry) {
  return live.find(
    (each) =>
      each.driver === driver && each.pool === pool && each.device === device && each.shareID === shareID,
  );
}

function timed(entry: StatusEntry, live: Record<string, unknown> | undefined, now: number) {
  const { conditions } = entry;
  if (!conditions) return entry;
  const known = recordsOf(live?.conditions);
  const time = new Date(now).toISOString().replace(/\.\d+Z$/, "Z");
  const timeOf = ({ type, status }: StatusCondition) =>
    known.find((each) => each.type === type && each.status === status)?.lastTransitionTime ?? time;
  return {
    ...entry,
    conditions: conditions.map((each) => ({ ...each, lastTransitionTime: timeOf(each) })),
  };
}

// Kubernetes 1.36 and later report a missing permission for a driver's entries as a forbidden field of an invalid
// object (422), like a field that this claim must not have.
function refusalOf(error: unknown): NodekeeperError | undefined {
  const causes = error instanceof ApiStatusError ? error.summary.causes : [];
  const code = codeOf(error);
  const isField = causes.some(({ reason }) => reason === "FieldValueForbidden");
  const isOwned = causes.some(({ reason }) => reason === "FieldManagerConflict");
  if (code !== "forbidden" && !isField && !isOwned) return undefined;
  return new DeviceStatusNotWritten({ problem: messageOf(error) }, { cause: error, code });
}
