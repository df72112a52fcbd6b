import { quote } from "@nodekeeper/core/lib";
import type { ClaimedDevice } from "./answer.ts";
import { MOST_ZONES_OF_A_RESOURCE } from "./device-zones.ts";
import type { Problems } from "./problems.ts";
import { ZoneLedger } from "./zones.ts";

/** The zone type of DRA devices whose driver has no other. */
export const CLAIMED_DEVICE_ZONE = "DRADevice";

/** Attributes of a device in the shape of resource.k8s.io/v1, as far as they are looked at here. */
export type DeviceAttributes = Readonly<Record<string, DeviceAttribute>>;

interface DeviceAttribute {
  readonly int?: number | bigint;
  readonly ints?: readonly (number | bigint)[];
  readonly string?: string;
}

/** What a driver says of one of its devices; undefined where it says nothing to this agent. */
export type DeviceAttributesLookup = (
  driver: string,
  pool: string,
  device: string,
) => DeviceAttributes | undefined;

/** What drivers stream of their devices to this agent. */
export interface ReportedDevices {
  readonly attributesOf: DeviceAttributesLookup;
  /** Calls back when devices of a driver become known, as when it connects after a restart; gives the way to stop that. */
  onKnown(callback: () => void): () => void;
}

/** A pod that runs, under the name it has in zones. */
export interface ClaimHolder {
  readonly consumer: string;
  readonly claimed: readonly ClaimedDevice[];
}

// Standard attributes: k8s.io/dynamic-resource-allocation/deviceattribute; numaNode by KEP-6072.
const NUMA_NODE = "resource.kubernetes.io/numaNode";
const SHOWN = ["resource.kubernetes.io/pcieRoot", "resource.kubernetes.io/pciBusID"];
// What drivers called it before there was a standard: the table of KEP-6072.
const OWN_NUMA_NODES = ["numaNode", "numaNodeID", "numa"];
const OTHER_NUMA_NODES = ["dra.net/numaNode", "dra.cpu/numaNodeID"];

/**
 * Makes a zone of each DRA device that a pod holds, below the NUMA node that its driver gives it. How many devices there
 * are, and how many can be had, is in ResourceSlices and not known here: the zones have allocations alone, and the NUMA
 * nodes do not count them. Several pods may hold one device, by one claim or by several.
 * @param zoneTypes by the driver's name
 * @returns the zones of devices whose NUMA node is not known
 */
export function enterClaimedDevices(
  nodes: ReadonlyMap<number, ZoneLedger>,
  holders: readonly ClaimHolder[],
  zoneTypes: ReadonlyMap<string, string>,
  attributesOf: DeviceAttributesLookup,
  problems: Problems,
): ZoneLedger[] {
  const apart: ZoneLedger[] = [];
  for (const [driver, devices] of collect(holders, problems)) {
    if (devices.size > MOST_ZONES_OF_A_RESOURCE) {
      problems.add(
        `pods hold ${devices.size} devices of driver ${quote(driver)}, zones are made of at most ${MOST_ZONES_OF_A_RESOURCE}`,
      );
      continue;
    }
    const type = zoneTypes.get(driver) ?? CLAIMED_DEVICE_ZONE;
    for (const [name, { pool, device, consumers }] of devices) {
      const attributes = attributesOf(driver, pool, device) ?? {};
      const zone = new ZoneLedger(type, name);
      for (const consumer of consumers) zone.hold(consumer, driver, 1n);
      for (const shown of SHOWN) {
        const value = attributes[shown]?.string;
        if (value !== undefined) zone.attributes.push({ name: shown, value });
      }
      const near = numaNodeOf(driver, attributes);
      const node = near === undefined ? undefined : nodes.get(near);
      if (near !== undefined && !node)
        problems.add(`device ${quote(name)} on NUMA node ${near} that the machine does not have`);
      if (node) node.children.push(zone);
      else apart.push(zone);
    }
  }
  return apart;
}

interface Held extends ClaimedDevice {
  readonly consumers: Set<string>;
}

// By driver, then by the name that Kubernetes writes for a device: <driver>/<pool>/<device>.
function collect(holders: readonly ClaimHolder[], problems: Problems): Map<string, Map<string, Held>> {
  const byDriver = new Map<string, Map<string, Held>>();
  for (const { consumer, claimed } of holders) {
    for (const { driver, pool, device } of claimed) {
      if (driver === "" || pool === "" || device === "") {
        problems.add("claims of which the kubelet does not name driver, pool and device");
        continue;
      }
      const devices = byDriver.get(driver) ?? new Map<string, Held>();
      byDriver.set(driver, devices);
      const name = `${driver}/${pool}/${device}`;
      const held = devices.get(name) ?? { driver, pool, device, consumers: new Set() };
      devices.set(name, held);
      held.consumers.add(consumer);
    }
  }
  return byDriver;
}

/** The NUMA node a device is attached to, by the first attribute that says so; undefined where none does. */
function numaNodeOf(driver: string, attributes: DeviceAttributes): number | undefined {
  const own = OWN_NUMA_NODES.flatMap((name) => [name, `${driver}/${name}`]);
  for (const name of [NUMA_NODE, ...own, ...OTHER_NUMA_NODES]) {
    // Of a list, the first is the device's own node; the others are as near to it as nodes of its socket can be.
    const value = attributes[name]?.int ?? attributes[name]?.ints?.[0];
    // Below zero: no node, as the kernel writes it.
    if (value !== undefined && value >= 0) return Number(value);
  }
  return undefined;
}
