import { DriverAnswerRefused } from "@nodekeeper/api/errors";
import type { PrepareDevicesResponse } from "@nodekeeper/core/gen/nodekeeper/devices/v1alpha2/preparation.ts";
import { isRecord } from "@nodekeeper/core/kube";
import { errorIdOf, messageOf, NodekeeperError, quote } from "@nodekeeper/core/lib";
import { type AllocatedDevice, type ClaimPod, type DeviceIdentity, sameDevice } from "./allocation.ts";
import type { ClaimReference } from "./claim-reader.ts";
import { type CdiEdits, cdiEdits, checkHostPaths } from "./container-edits.ts";
import type { HostFiles } from "./host-files.ts";
import { devicesOfHeader, headerDevices, type PreparedDevice } from "./recorded-devices.ts";

/** The result of preparing a claim. */
export interface Prepared {
  devices: PreparedDevice[];
  /** Text of the CDI file; empty if none is needed. */
  cdi: string;
}

/** The owner of a CDI file, as stored in its header so that a lost record can be recreated. */
export interface FileOwner extends ClaimReference {
  driver: string;
  boot: string;
  /** Pods that the claim was reserved for. */
  pods: ClaimPod[];
  /** User ID that the driver's sockets belonged to. */
  driverUid: number;
  devices: PreparedDevice[];
}

// The oldest version that supports a device node's hostPath, and names that start with a digit.
const CDI_VERSION = "0.5.0";
const HEADER = "# nodekeeper: ";
const MOST_BYTES = 1024 * 1024;
const MOST_OWN_IDS = 64;
// https://github.com/cncf-tags/container-device-interface/blob/main/SPEC.md: "vendor/class=name".
const cdiId = /^[A-Za-z][A-Za-z0-9_.-]*[A-Za-z0-9]\/[A-Za-z][A-Za-z0-9_.-]*=[A-Za-z0-9][A-Za-z0-9_.:-]*$/;

/**
 * Converts the driver's answer for a claim to a CDI file and the devices for the kubelet. Names of CDI devices contain
 * the claim's UID, because container runtimes may cache the edits of a name. Throws `invalid`, with device and field,
 * if the answer does not match the claim or violates the CDI specification.
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
    throw new DriverAnswerRefused({
      problem: `the driver prepared ${nameOf(unknown)}, which the claim does not have`,
    });
  for (const each of allocated) {
    const { request, pool, device, shareId } = each;
    const identity = { request, pool, device, shareId };
    const [answer, second] = answered.filter((one) => sameDevice(one, identity));
    if (!answer) throw new DriverAnswerRefused({ problem: `the driver did not prepare ${nameOf(identity)}` });
    if (second) throw new DriverAnswerRefused({ problem: `the driver prepared ${nameOf(identity)} twice` });
    const ownIds = checkedIds(owner.driver, identity, answer.cdiDeviceIds, host);
    if (!answer.edits) {
      devices.push({ ...each, cdiDeviceIds: ownIds });
      continue;
    }
    let containerEdits: CdiEdits;
    try {
      containerEdits = await cdiEdits(answer.edits, host);
    } catch (error) {
      throw new NodekeeperError("invalid", `${nameOf(identity)}: ${messageOf(error)}`, {
        id: errorIdOf(error) ?? DriverAnswerRefused.id,
      });
    }
    const name = freeName(`${owner.uid}_${device}`, names);
    cdiDevices.push({ name, containerEdits });
    devices.push({ ...each, cdiDeviceIds: [`${kindOf(owner.driver)}=${name}`, ...ownIds] });
  }
  if (cdiDevices.length === 0) return { devices, cdi: "" };
  const spec = { cdiVersion: CDI_VERSION, kind: kindOf(owner.driver), devices: cdiDevices };
  const cdi = `${HEADER}${JSON.stringify({ ...owner, devices: headerDevices(devices) })}\n${JSON.stringify(spec, undefined, 2)}\n`;
  const bytes = Buffer.byteLength(cdi);
  if (bytes > MOST_BYTES)
    throw new DriverAnswerRefused({
      problem: `the edits make a CDI file of ${bytes} bytes, more than ${MOST_BYTES}`,
    });
  return { devices, cdi };
}

/** Returns the owner from a file's header. Undefined without a valid header. */
export function ownerOf(text: string): FileOwner | undefined {
  if (!text.startsWith(HEADER)) return undefined;
  try {
    const header: unknown = JSON.parse(text.slice(HEADER.length, text.indexOf("\n")));
    if (!isRecord(header)) return undefined;
    const { driver, namespace, name, uid, boot, devices, pods, driverUid } = header;
    const texts = [driver, namespace, name, uid, boot];
    if (!texts.every((value) => typeof value === "string" && value !== "")) return undefined;
    if (!Array.isArray(devices) || !Array.isArray(pods) || typeof driverUid !== "number") return undefined;
    const owner = header as unknown as FileOwner;
    return { ...owner, devices: devicesOfHeader(devices) };
  } catch {
    return undefined;
  }
}

/**
 * Checks the host paths in a CDI file of the agent before it is written again. Throws `invalid` as
 * `HostFiles.checkAllowed` does.
 */
export async function checkFile(text: string, host: HostFiles): Promise<void> {
  const spec = JSON.parse(text.slice(text.indexOf("\n"))) as { devices: { containerEdits: CdiEdits }[] };
  for (const { containerEdits } of spec.devices) await checkHostPaths(containerEdits, host);
}

// A vendor must start with a letter; a driver's name need not.
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
    new DriverAnswerRefused({ problem: `${nameOf(identity)}: ${message}` });
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

// One device may be allocated for several requests of a claim. Names of devices contain no underscore.
function freeName(name: string, names: Set<string>): string {
  let free = name;
  for (let number = 2; names.has(free); number++) free = `${name}_${number}`;
  names.add(free);
  return free;
}

function nameOf({ request, pool, device, shareId }: DeviceIdentity): string {
  return `device ${pool}/${device}${shareId === "" ? "" : ` share ${shareId}`} of request ${request}`;
}
