import { DeviceStatusRefused } from "@nodekeeper/api/errors";
import type { DeviceStatus } from "@nodekeeper/core/gen/nodekeeper/devices/v1alpha2/preparation.ts";
import { messageOf, quote } from "@nodekeeper/core/lib";
import type { DriverProblem } from "../devices/index.ts";
import type { DeviceIdentity } from "./allocation.ts";
import { type StatusEntry, statusEntry } from "./device-status.ts";

/** The status of a device that is refused. The message names claim, device and field. */
export interface RefusedStatus extends DriverProblem {
  /**
   * The valid entry, if it is refused only because its claim is unknown or its device is not allocated to the claim.
   * It may be accepted later. Undefined if the status is invalid.
   */
  entry: StatusEntry | undefined;
}

/** What a driver reported of its allocated devices. */
export interface StatusReport {
  /** Valid entries, by UID of the claim. Those of devices that are not allocated are kept: they may be later. */
  entries: ReadonlyMap<string, readonly StatusEntry[]>;
  /** At most 1,000. */
  refused: readonly RefusedStatus[];
}

interface Context {
  /** Name of the pool whose name is empty in reports. */
  nodeName: string;
  /** Returns a claim's devices of the driver. "any" if they are not known here; undefined if the claim is not known. */
  devicesOf: (uid: string) => readonly DeviceIdentity[] | "any" | undefined;
}

const MOST_REFUSED = 1_000;

/** Checks a driver's report, each device by itself. */
export function readStatusReport(
  driver: string,
  devices: readonly DeviceStatus[],
  { nodeName, devicesOf }: Context,
): StatusReport {
  const entries = new Map<string, StatusEntry[]>();
  const refused: RefusedStatus[] = [];
  const seen = new Set<string>();
  for (const reported of devices) {
    const { claimUid: uid, device, shareId } = reported;
    const pool = reported.pool || nodeName;
    let entry: StatusEntry | undefined;
    try {
      const valid = statusEntry(driver, { ...reported, pool });
      const key = [uid, pool, device, shareId].join(" ");
      if (seen.has(key)) throw new Error("device: it is reported twice");
      seen.add(key);
      const known = entries.get(uid);
      if (known) known.push(valid);
      else entries.set(uid, [valid]);
      entry = valid;
      checkAllocated(devicesOf(uid), valid);
    } catch (error) {
      if (refused.length === MOST_REFUSED) continue;
      const share = shareId === "" ? "" : `, share ${quote(shareId)}`;
      const where = `claim ${quote(uid)}, device ${quote(`${pool}/${device}`)}${share}`;
      const message = `status refused: ${where}: ${messageOf(error)}`;
      refused.push({ errorId: DeviceStatusRefused.id, message, claimUid: uid, pool, device, entry });
    }
  }
  return { entries, refused };
}

/** Returns whether the device of an entry is one of these. */
export function isAllocated(
  devices: readonly DeviceIdentity[],
  { pool, device, shareID = "" }: StatusEntry,
): boolean {
  return devices.some((each) => each.pool === pool && each.device === device && each.shareId === shareID);
}

function checkAllocated(devices: ReturnType<Context["devicesOf"]>, entry: StatusEntry): void {
  if (!devices)
    throw new Error(
      "claim_uid: no such claim is prepared, or waits to be bound, for the driver on this node",
    );
  if (devices !== "any" && !isAllocated(devices, entry))
    throw new Error("device: it is not allocated to the claim");
}
