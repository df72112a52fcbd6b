import type { Probe } from "./probe.ts";

/** `physical`: a device on a bus (also a virtual machine's virtio card). `bond`: several as one. `virtual`: the rest. */
export type InterfaceKind = "physical" | "bond" | "virtual";

export interface NetworkInterface {
  name: string;
  kind: InterfaceKind;
  /** The kernel's number of the interface. */
  index?: number;
  /** RFC 2863 state: "up", "down", "unknown", ... */
  operationalState?: string;
  /** Mb/s; absent while the link is down or where the driver does not know. */
  speedMbps?: number;
  /** Bytes. */
  mtu?: number;
  macAddress?: string;
  /** The NUMA node the device is attached to; absent where the machine does not report it. */
  numaNode?: number;
  /** "0000:3b:00.0" */
  pciAddress?: string;
}

export interface NetworkOptions {
  /** Also those that exist in software only, of which a node has one or more for each pod. Default false. */
  virtual?: boolean;
}

const NET_ROOT = "/sys/class/net";
const VIRTUAL_ROOT = "/sys/devices/virtual/net";
const MAX_INTERFACES = 4_096;

/** The interfaces of the network namespace that /sys was mounted in, by name; undefined where there is no such list. */
export async function readNetworkInterfaces(
  probe: Probe,
  options: NetworkOptions = {},
): Promise<NetworkInterface[] | undefined> {
  const [names, bonds, virtualNames] = await Promise.all([
    probe.list(NET_ROOT),
    // This is a file among the links; it exists while the bonding driver is loaded.
    probe.text(`${NET_ROOT}/bonding_masters`),
    // One listing replaces a look at each pod's link.
    options.virtual ? undefined : probe.list(VIRTUAL_ROOT),
  ]);
  if (!names) return undefined;
  const bondNames = new Set(bonds?.split(/\s+/));
  const skipped = new Set([...(virtualNames ?? []), "bonding_masters"]);
  const candidates = names
    .filter((name) => bondNames.has(name) || !skipped.has(name))
    .slice(0, MAX_INTERFACES);
  const found = await Promise.all(candidates.map((name) => readInterface(probe, name, bondNames, options)));
  return found.filter((each) => each !== undefined);
}

async function readInterface(
  probe: Probe,
  name: string,
  bondNames: ReadonlySet<string>,
  options: NetworkOptions,
): Promise<NetworkInterface | undefined> {
  const target = await probe.link(`${NET_ROOT}/${name}`);
  if (target === undefined) return undefined;
  const kind = bondNames.has(name) ? "bond" : target.includes("/devices/virtual/") ? "virtual" : "physical";
  if (kind === "virtual" && !options.virtual) return undefined;

  const at = `${NET_ROOT}/${name}`;
  const [operationalState, speed, mtu, macAddress, index, numaNode] = await Promise.all([
    probe.text(`${at}/operstate`),
    // A link that is down or a driver without the speed answers EINVAL or EOPNOTSUPP.
    probe.optionalText(`${at}/speed`),
    probe.integer(`${at}/mtu`),
    probe.text(`${at}/address`),
    probe.integer(`${at}/ifindex`),
    kind === "physical" ? readNumaNode(probe, at) : undefined,
  ]);
  const pciAddress = target.match(/[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7](?=\/)/g)?.at(-1);
  return {
    name,
    kind,
    ...(index === undefined ? {} : { index }),
    ...(operationalState ? { operationalState } : {}),
    ...speedOf(speed),
    ...(mtu === undefined ? {} : { mtu }),
    ...(macAddress ? { macAddress } : {}),
    ...(numaNode === undefined || numaNode < 0 ? {} : { numaNode }),
    ...(pciAddress ? { pciAddress } : {}),
  };
}

// A virtio card's device is a child of the PCI device, which knows the node.
async function readNumaNode(probe: Probe, at: string): Promise<number | undefined> {
  return (
    (await probe.integer(`${at}/device/numa_node`)) ?? (await probe.integer(`${at}/device/../numa_node`))
  );
}

// The kernel writes -1 for unknown; some drivers write it as an unsigned number, 4294967295, or 65535.
function speedOf(text: string | undefined): { speedMbps?: number } {
  const speed = /^\d{1,10}$/.test(text ?? "") ? Number(text) : -1;
  return speed > 0 && speed !== 65_535 && speed < 2 ** 31 ? { speedMbps: speed } : {};
}
