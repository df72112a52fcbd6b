import type { CdiEdits } from "./container-edits.ts";

/** A CDI file, as far as the agent writes it. */
export interface CdiSpec {
  cdiVersion: string;
  /** "<vendor>/<class>" */
  kind: string;
  devices: CdiDevice[];
  /** Made once in each container that uses any of the devices. */
  containerEdits?: CdiEdits;
}

export interface CdiDevice {
  name: string;
  annotations?: Record<string, string>;
  containerEdits: CdiEdits;
}

/**
 * Returns the lowest CDI version that specifies everything that the file uses, because a container runtime rejects a
 * file of a version that it does not know. At least 0.5.0, the oldest version with the hostPath of a device node and
 * with names that start with a digit, as UIDs may. Source:
 * https://github.com/cncf-tags/container-device-interface/blob/main/SPEC.md
 */
export function lowestVersion({ devices, containerEdits = {} }: Omit<CdiSpec, "cdiVersion">): string {
  const edits = [containerEdits, ...devices.map((device) => device.containerEdits)];
  if (edits.some(needs110)) return "1.1.0";
  if (edits.some(({ intelRdt, additionalGids }) => intelRdt || additionalGids)) return "0.7.0";
  if (devices.some(({ annotations }) => annotations)) return "0.6.0";
  return "0.5.0";
}

function needs110({ netDevices, intelRdt }: CdiEdits): boolean {
  // Earlier versions refuse the root class of service, "/".
  return Boolean(netDevices || intelRdt?.schemata || intelRdt?.enableMonitoring || intelRdt?.closID === "/");
}

/** All edits of a file: those for the whole claim first. */
export function editsOf({
  devices,
  containerEdits,
}: Pick<CdiSpec, "devices" | "containerEdits">): CdiEdits[] {
  return [...(containerEdits ? [containerEdits] : []), ...devices.map((device) => device.containerEdits)];
}
