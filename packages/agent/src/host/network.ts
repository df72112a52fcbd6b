import type { Probe } from "./probe.ts";

/** A device on a bus, including virtio, or a bond of several. */
export interface NetworkInterface {
  name: string;
  /** Interface index (ifindex). */
  index?: number;
  /** Operational state per RFC 2863: "up", "down", "unknown", ... */
  operationalState?: string;
  /** In Mbit/s; absent while the link is down or if the driver does not report it. */
  speedMbps?: number;
  /** NUMA node of the device; absent if the machine does not report it. */
  numaNode?: number;
  /** Such as "0000:3b:00.0". */
  pciAddress?: string;
}

const NET_ROOT = "/sys/class/net";
const VIRTUAL_ROOT = "/sys/devices/virtual/net";
const MAX_INTERFACES = 4_096;

/**
 * Lists the interfaces of the network namespace in which /sys was mounted, except software interfaces, of which a node
 * has at least one per pod. Undefined if they cannot be listed.
 */
export async function readNetworkInterfaces(probe: Probe): Promise<NetworkInterface[] | undefined> {
  const [names, bonds, virtualNames] = await Promise.all([
    probe.list(NET_ROOT),
    // A regular file among the links; it exists while the bonding driver is loaded.
    probe.text(`${NET_ROOT}/bonding_masters`),
    // One listing instead of one readlink per pod.
    probe.list(VIRTUAL_ROOT),
  ]);
  if (!names) return undefined;
  const bondNames = new Set(bonds?.split(/\s+/));
  const skipped = new Set([...(virtualNames ?? []), "bonding_masters"]);
  const candidates = names
    .filter((name) => bondNames.has(name) || !skipped.has(name))
    .slice(0, MAX_INTERFACES);
  const found = await Promise.all(candidates.map((name) => readInterface(probe, name, bondNames.has(name))));
  return found.filter((each) => each !== undefined);
}

async function readInterface(
  probe: Probe,
  name: string,
  isBond: boolean,
): Promise<NetworkInterface | undefined> {
  const target = await probe.link(`${NET_ROOT}/${name}`);
  if (target === undefined) return undefined;
  if (!isBond && target.includes("/devices/virtual/")) return undefined;

  const at = `${NET_ROOT}/${name}`;
  const [operationalState, speed, index, numaNode] = await Promise.all([
    probe.text(`${at}/operstate`),
    // The read fails with EINVAL or EOPNOTSUPP if the link is down or the driver does not report a speed.
    probe.optionalText(`${at}/speed`),
    probe.integer(`${at}/ifindex`),
    isBond ? undefined : readNumaNode(probe, at),
  ]);
  const pciAddress = target.match(/[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7](?=\/)/g)?.at(-1);
  return {
    name,
    ...(index === undefined ? {} : { index }),
    ...(operationalState ? { operationalState } : {}),
    ...speedOf(speed),
    ...(numaNode === undefined || numaNode < 0 ? {} : { numaNode }),
    ...(pciAddress ? { pciAddress } : {}),
  };
}

// A virtio device is a child of the PCI device, which has the numa_node attribute.
async function readNumaNode(probe: Probe, at: string): Promise<number | undefined> {
  return (
    (await probe.integer(`${at}/device/numa_node`)) ?? (await probe.integer(`${at}/device/../numa_node`))
  );
}

// The kernel reports -1 for an unknown speed; some drivers report it as unsigned 4294967295, or as 65535.
function speedOf(text: string | undefined): { speedMbps?: number } {
  const speed = /^\d{1,10}$/.test(text ?? "") ? Number(text) : -1;
  return speed > 0 && speed !== 65_535 && speed < 2 ** 31 ? { speedMbps: speed } : {};
}
