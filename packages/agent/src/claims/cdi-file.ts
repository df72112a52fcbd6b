import { DriverAnswerRefused } from "@nodekeeper/api/errors";
import { isRecord } from "@nodekeeper/core/kube";
import { isDnsLabel } from "@nodekeeper/core/lib";
import type { ClaimPod } from "./allocation.ts";
import { type CdiSpec, editsOf } from "./cdi-version.ts";
import type { ClaimReference } from "./claim-reader.ts";
import { checkHostPaths } from "./container-edits.ts";
import type { DeviceMetadata } from "./device-metadata.ts";
import type { HostFiles } from "./host-files.ts";
import { devicesOfHeader, headerDevices, type PreparedDevice } from "./recorded-devices.ts";

/** The owner of a CDI file, as stored in its header so that a lost record can be recreated. */
export interface FileOwner extends ClaimReference {
  driver: string;
  boot: string;
  /** Pods that the claim was reserved for. */
  pods: ClaimPod[];
  /** User ID that the driver's sockets belonged to. */
  driverUid: number;
  devices: PreparedDevice[];
  /** Of the files that the CDI file mounts. */
  metadata?: DeviceMetadata | undefined;
}

const HEADER = "# nodekeeper: ";
const MOST_BYTES = 1024 * 1024;

/** Returns a CDI file. Throws `invalid` if it is larger than 1 MiB. */
export function fileText({ devices, ...owner }: FileOwner, spec: CdiSpec): string {
  const header = JSON.stringify({ ...owner, devices: headerDevices(devices) });
  const text = `${HEADER}${header}\n${JSON.stringify(spec, undefined, 2)}\n`;
  const bytes = Buffer.byteLength(text);
  if (bytes <= MOST_BYTES) return text;
  throw new DriverAnswerRefused({
    problem: `the edits make a CDI file of ${bytes} bytes, more than ${MOST_BYTES}`,
  });
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
    // Keys become names of files.
    const { metadata = {} } = owner;
    const isMetadata = ([request, body]: [string, unknown]) =>
      isDnsLabel(request) && typeof body === "string";
    if (!isRecord(metadata) || !Object.entries(metadata).every(isMetadata)) return undefined;
    return { ...owner, devices: devicesOfHeader(devices) };
  } catch {
    return undefined;
  }
}

/** Returns the specification in a CDI file of the agent. */
export function specOf(text: string): CdiSpec {
  return JSON.parse(text.slice(text.indexOf("\n")));
}

/**
 * Checks the host paths and interfaces in a CDI file of the agent before it is written again. Throws `invalid` as
 * `checkHostPaths` does.
 * @param own files of the agent that it mounts
 */
export async function checkFile(text: string, host: HostFiles, own: readonly string[] = []): Promise<void> {
  for (const edits of editsOf(specOf(text))) {
    const mounts = edits.mounts?.filter(({ hostPath }) => !own.includes(hostPath));
    await checkHostPaths({ ...edits, mounts }, host);
  }
}
