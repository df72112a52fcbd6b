import type { IntelRdt, NetDevice } from "@nodekeeper/core/gen/nodekeeper/devices/v1alpha2/preparation.ts";
import { quote } from "@nodekeeper/core/lib";
import { checkCount, plain, refusal } from "./edit-checks.ts";
import type { HostFiles } from "./host-files.ts";

/** An interface of the node that is moved into a container's network namespace. */
export interface CdiNetDevice {
  hostInterfaceName: string;
  name: string;
}

export interface CdiIntelRdt {
  closID?: string;
  l3CacheSchema?: string;
  memBwSchema?: string;
  schemata?: string[];
  enableMonitoring?: boolean;
}

// (gid_t) -1 is no group.
const NO_GROUP = 2 ** 32 - 1;
// The kernel's PATH_MAX: the class of service is a directory of resctrl.
const LONGEST_CLOS_ID = 4095;

/** Checks group IDs of a container's first process. Throws `invalid` with the field. */
export function additionalGids(gids: readonly number[]): void {
  checkCount("additionalGids", gids);
  for (const [at, gid] of gids.entries()) {
    // Runtimes ignore 0 silently.
    if (gid === 0 || gid === NO_GROUP) throw refusal(`additionalGids[${at}]`, `${gid} is not allowed`);
    if (gids.indexOf(gid) !== at) throw refusal(`additionalGids[${at}]`, `${gid} is duplicated`);
  }
}

/** Converts settings of Intel RDT. Throws `invalid` with the field. */
export function intelRdt(settings: IntelRdt): CdiIntelRdt {
  const { closId, l3CacheSchema, memBwSchema, schemata, enableMonitoring } = settings;
  const isClass = closId === "/" || (closId !== "." && closId !== ".." && !closId.includes("/"));
  if (!isClass || closId.length > LONGEST_CLOS_ID)
    throw refusal("intelRdt.closId", `${quote(closId)} is not the name of a directory`);
  checkCount("intelRdt.schemata", schemata);
  const lines = { closId, l3CacheSchema, memBwSchema };
  // Each is written to resctrl as a line.
  for (const [name, text] of Object.entries(lines)) line(text, `intelRdt.${name}`, true);
  for (const [at, text] of schemata.entries()) line(text, `intelRdt.schemata[${at}]`);
  const converted = {
    ...(closId && { closID: closId }),
    ...(l3CacheSchema && { l3CacheSchema }),
    ...(memBwSchema && { memBwSchema }),
    ...(schemata.length > 0 && { schemata }),
    ...(enableMonitoring && { enableMonitoring }),
  };
  if (Object.keys(converted).length === 0) throw refusal("intelRdt", "has no field; omit it");
  return converted;
}

/**
 * Returns the CDI entry for an interface that is moved into a container. Throws `invalid` with the field if Linux does
 * not accept a name, and as `HostFiles.checkInterface` does. The interface need not exist, because a claim may be
 * prepared again while its container has the interface.
 */
export async function netDevice(
  { hostInterfaceName, name }: NetDevice,
  field: string,
  host: HostFiles,
): Promise<CdiNetDevice> {
  interfaceName(hostInterfaceName, `${field}.hostInterfaceName`);
  interfaceName(name, `${field}.name`);
  await host.checkInterface(hostInterfaceName, `${field}.hostInterfaceName`);
  return { hostInterfaceName, name };
}

function line(text: string, field: string, mayBeEmpty = false): void {
  plain(text, field, mayBeEmpty);
  if (text.includes("\n")) throw refusal(field, "contains a line break");
}

// Source: dev_valid_name() of Linux. "lo" exists in each network namespace and can't be moved.
function interfaceName(name: string, field: string): void {
  plain(name, field);
  const isValid =
    Buffer.byteLength(name) <= 15 && !/[\s/:]/.test(name) && name !== "." && name !== ".." && name !== "lo";
  if (!isValid)
    throw refusal(field, `${quote(name)} is not the name of a network interface of at most 15 bytes`);
}
