import type { PrepareDevicesResponse } from "@nodekeeper/core/gen/nodekeeper/devices/v1alpha1/preparation.ts";
import { isRecord } from "@nodekeeper/core/kube";
import { messageOf, NodekeeperError, quote } from "@nodekeeper/core/lib";
import { type AllocatedDevice, type DeviceIdentity, sameDevice } from "./allocation.ts";
import type { ClaimReference } from "./claim-reader.ts";
import { type CdiEdits, cdiEdits } from "./container-edits.ts";
import type { HostFiles } from "./host-files.ts";

/** A device as it is handed to the kubelet. */
export interface PreparedDevice extends DeviceIdentity {
  cdiDeviceIds: string[];
}

/** What a claim's preparation resulted in. */
export interface Prepared {
  devices: PreparedDevice[];
  /** Text of the CDI file; empty where none is needed. */
  cdi: string;
}

/** A claim as its CDI file names it, so that its record can be recreated from the file. */
export interface FileOwner extends ClaimReference {
  driver: string;
  boot: string;
  devices: PreparedDevice[];
}

// The oldest version with device nodes of another path on the host, and with names that begin with a digit.
const CDI_VERSION = "0.5.0";
const HEADER = "# nodekeeper: ";
const MOST_BYTES = 1024 * 1024;
const MOST_OWN_IDS = 64;
// https://github.com/cncf-tags/container-device-interface/blob/main/SPEC.md: "vendor/class=name".
const cdiId = /^[A-Za-z][A-Za-z0-9_.-]*[A-Za-z0-9]\/[A-Za-z][A-Za-z0-9_.-]*=[A-Za-z0-9][A-Za-z0-9_.:-]*$/;

/**
 * Puts the driver's answer for a claim into a CDI file and the devices for the kubelet. Names of CDI devices are made of
 * the claim's UID, for container runtimes may keep what a name meant before.
 * Throws `invalid` that names the device and field where the answer is not one for this claim, or breaks a rule of CDI.
 */
export async function preparedOf(
  owner: Omit<FileOwner, "devices">,
  allocated: readonly AllocatedDevice[],
  { devices: answered }: PrepareDevicesResponse,
  host: HostFiles,
): Promise<Prepared> {
  const devices: PreparedDevice[] = [];
  const cdiDevices: { name: string; containerEdits: CdiEdits }[] = [];
  const names = new Set<string>();
  for (const unknown of answered.filter((device) => !allocated.some((each) => sameDevice(each, device))))
    throw new NodekeeperError(
      "invalid",
      `the driver prepared ${nameOf(unknown)}, which the claim does not have`,
      { id: "NK1507" },
    );
  for (const { request, pool, device, shareId } of allocated) {
    const identity = { request, pool, device, shareId };
    const [answer, second] = answered.filter((each) => sameDevice(each, identity));
    if (!answer)
      throw new NodekeeperError("invalid", `the driver did not prepare ${nameOf(identity)}`, {
        id: "NK1507",
      });
    if (second)
      throw new NodekeeperError("invalid", `the driver prepared ${nameOf(identity)} twice`, { id: "NK1507" });
    const ownIds = checkedIds(owner.driver, identity, answer.cdiDeviceIds, host);
    if (!answer.edits) {
      devices.push({ ...identity, cdiDeviceIds: ownIds });
      continue;
    }
    let containerEdits: CdiEdits;
    try {
      containerEdits = await cdiEdits(answer.edits, host);
    } catch (error) {
      throw new NodekeeperError("invalid", `${nameOf(identity)}: ${messageOf(error)}`, { id: "NK1507" });
    }
    const name = freeName(`${owner.uid}_${device}`, names);
    cdiDevices.push({ name, containerEdits });
    devices.push({ ...identity, cdiDeviceIds: [`${kindOf(owner.driver)}=${name}`, ...ownIds] });
  }
  if (cdiDevices.length === 0) return { devices, cdi: "" };
  const spec = { cdiVersion: CDI_VERSION, kind: kindOf(owner.driver), devices: cdiDevices };
  const cdi = `${HEADER}${JSON.stringify({ ...owner, devices })}\n${JSON.stringify(spec, undefined, 2)}\n`;
  const bytes = Buffer.byteLength(cdi);
  if (bytes > MOST_BYTES)
    throw new NodekeeperError(
      "invalid",
      `the edits make a CDI file of ${bytes} bytes, more than ${MOST_BYTES}`,
      { id: "NK1507" },
    );
  return { devices, cdi };
}

/** Whose file it is by its header; undefined where it has none that makes sense. */
export function ownerOf(text: string): FileOwner | undefined {
  if (!text.startsWith(HEADER)) return undefined;
  try {
    const header: unknown = JSON.parse(text.slice(HEADER.length, text.indexOf("\n")));
    if (!isRecord(header)) return undefined;
    const { driver, namespace, name, uid, boot, devices } = header;
    const texts = [driver, namespace, name, uid, boot];
    if (!texts.every((value) => typeof value === "string" && value !== "")) return undefined;
    return Array.isArray(devices) ? (header as unknown as FileOwner) : undefined;
  } catch {
    return undefined;
  }
}

// A vendor begins with a letter, which a driver's name need not.
function kindOf(driver: string): string {
  return `k8s.${driver}/claim`;
}

function checkedIds(
  driver: string,
  identity: DeviceIdentity,
  ids: string[],
  { isRestricted }: HostFiles,
): string[] {
  const refusal = (message: string) =>
    new NodekeeperError("invalid", `${nameOf(identity)}: ${message}`, { id: "NK1507" });
  if (ids.length > MOST_OWN_IDS) throw refusal(`has more than ${MOST_OWN_IDS} CDI devices`);
  const wrong = ids.find((id) => !cdiId.test(id) || id.length > 512);
  if (wrong !== undefined) throw refusal(`cdiDeviceIds: ${quote(wrong)} is not "<vendor>/<class>=<name>"`);
  const foreign = ids.find((id) => ![driver, `k8s.${driver}`].includes(id.split("/")[0]!));
  if (isRestricted && foreign !== undefined)
    throw refusal(
      `cdiDeviceIds: the vendor of ${quote(foreign)} is not ${driver} (devices.kubeletPlugin.hostPaths)`,
    );
  return ids;
}

// One device may serve several requests of a claim. Names of devices have no underscore.
function freeName(name: string, names: Set<string>): string {
  let free = name;
  for (let number = 2; names.has(free); number++) free = `${name}_${number}`;
  names.add(free);
  return free;
}

function nameOf({ request, pool, device, shareId }: DeviceIdentity): string {
  return `device ${pool}/${device}${shareId === "" ? "" : ` share ${shareId}`} of request ${request}`;
}
