import { execFile } from "node:child_process";
import { readdir, readFile, realpath } from "node:fs/promises";
import { promisify } from "node:util";

const execute = promisify(execFile);

/** An interface, as `ip -json -details address` prints it. */
export interface Link {
  ifname: string;
  flags: string[];
  mtu: number;
  min_mtu?: number;
  max_mtu?: number;
  address?: string;
  /** The bond, bridge or VRF that it is a part of. */
  master?: string;
  /** The interface below, as of a VLAN; the other end of a veth pair. */
  link?: string;
  linkinfo?: { info_kind?: string };
  /** "pci" and the bus ID, of a network card. */
  parentbus?: string;
  parentdev?: string;
  addr_info: { scope: string; local: string; prefixlen: number }[];
}

export interface Route {
  dev?: string;
  nexthops?: { dev?: string }[];
}

/** An interface that claims can have. */
export interface NetworkInterface {
  /** On the node. */
  name: string;
  link: Link;
  mtu: number;
  /** Set while a pod has it: its name there. */
  inPod?: string;
}

/** Reads the interfaces of this node. Runs in the node's network namespace. */
export class NodeInterfaces {
  readonly #driver: string;
  readonly #pattern: RegExp;

  /** @param pattern matches the names of the interfaces that claims can have */
  constructor(driver: string, pattern: RegExp) {
    this.#driver = driver;
    this.#pattern = pattern;
  }

  /** Returns the interfaces that are free, and those that pods have, by name on the node. */
  async read(): Promise<Map<string, NetworkInterface>> {
    const [links, moved, ...routes] = await Promise.all([
      ip<Link>("-details", "address", "show"),
      this.#moved(),
      ip<Route>("-4", "route", "show", "table", "all", "default"),
      ip<Route>("-6", "route", "show", "table", "all", "default"),
    ]);
    const free = freeInterfaces(links, routes.flat())
      .filter(({ ifname }) => this.#pattern.test(ifname))
      .map((link) => ({ name: link.ifname, link, mtu: link.mtu }));
    return new Map([...free, ...moved].map((each) => [each.name, each]));
  }

  // The namespaces that move-interface.sh names.
  async #moved(): Promise<NetworkInterface[]> {
    const namespaces = await readdir("/run/netns").catch(() => []);
    const own = namespaces.filter((each) => each.startsWith(`${this.#driver}:`));
    const found = await Promise.all(own.map(movedInterface));
    return found.filter((each) => each !== undefined);
  }
}

async function movedInterface(namespace: string): Promise<NetworkInterface | undefined> {
  const [, name = "", inPod = "", mtu = ""] = namespace.split(":");
  try {
    const [link] = await ip<Link>("-n", namespace, "-details", "address", "show", "dev", inPod);
    return link && { name, link, mtu: Number(mtu) || link.mtu, inPod };
  } catch {
    // It is moved at this moment.
    return undefined;
  }
}

/**
 * Returns the interfaces that the node itself does not use. Omits loopback, interfaces with a default route or a global
 * address, and those that belong to another interface or have one on top of them.
 */
export function freeInterfaces(links: readonly Link[], defaultRoutes: readonly Route[]): Link[] {
  const carriers = defaultRoutes.flatMap(({ dev, nexthops = [] }) => [
    dev,
    ...nexthops.map((hop) => hop.dev),
  ]);
  // The link of a veth is the other end of the pair.
  const lower = links.filter(({ linkinfo }) => linkinfo?.info_kind !== "veth").map(({ link }) => link);
  return links.filter(
    ({ ifname, flags, master, addr_info }) =>
      !flags.includes("LOOPBACK") &&
      !carriers.includes(ifname) &&
      master === undefined &&
      !lower.includes(ifname) &&
      !addr_info.some(({ scope }) => scope === "global"),
  );
}

/** Returns the attributes by which claims select an interface. Those of Kubernetes have its domain. */
export async function attributesOf({ name, link, mtu }: NetworkInterface) {
  const kind = link.linkinfo?.info_kind;
  return {
    ifName: { string: name },
    ...(link.address ? { mac: { string: link.address } } : {}),
    mtu: { int: BigInt(mtu) },
    type: { string: kind ?? "device" },
    virtual: { bool: kind !== undefined },
    ...(link.parentbus === "pci" && link.parentdev ? await pciAttributes(link.parentdev) : {}),
  };
}

async function pciAttributes(busId: string) {
  const device = `/sys/bus/pci/devices/${busId}`;
  const path = await realpath(device).catch(() => "");
  const root = /\/(pci[0-9a-f]{4}:[0-9a-f]{2})\//.exec(path)?.[1];
  const numaNode = Number(await readFile(`${device}/numa_node`, "utf8").catch(() => "-1"));
  return {
    "resource.kubernetes.io/pciBusID": { string: busId },
    ...(root ? { "resource.kubernetes.io/pcieRoot": { string: root } } : {}),
    ...(numaNode >= 0 ? { "resource.kubernetes.io/numaNode": { int: BigInt(numaNode) } } : {}),
  };
}

const label = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/;

/**
 * Returns the device name of an interface: its own name if that is a DNS label and does not start with "hex-",
 * otherwise "hex-" and its name in hexadecimal.
 */
export function deviceName(name: string): string {
  return label.test(name) && !name.startsWith("hex-") ? name : `hex-${Buffer.from(name).toString("hex")}`;
}

/** Returns the name of the interface on the node. */
export function interfaceName(device: string): string {
  return device.startsWith("hex-") ? Buffer.from(device.slice(4), "hex").toString() : device;
}

async function ip<T>(...args: string[]): Promise<T[]> {
  const { stdout } = await execute("ip", ["-json", ...args], {
    timeout: 10_000,
    maxBuffer: 64 * 1024 * 1024,
  });
  // Nothing at all if there are none.
  return stdout.trim() === "" ? [] : JSON.parse(stdout);
}
