import { quote } from "@nodekeeper/core/lib";
import type { ClaimedDevice } from "./answer.ts";
import { MAX_ZONES_OF_A_RESOURCE } from "./device-zones.ts";
import type { Problems } from "./problems.ts";
import { ZoneLedger, type ZoneTree } from "./zones.ts";

/** Default zone type of DRA devices. */
export const CLAIMED_DEVICE_ZONE = "DRADevice";

/** The relevant attributes of a device, in the format of resource.k8s.io/v1. */
export type DeviceAttributes = Readonly<Record<string, DeviceAttribute>>;

interface DeviceAttribute {
  readonly int?: number | bigint;
  readonly ints?: readonly (number | bigint)[];
  readonly string?: string;
}

/** Looks up the attributes of a driver's device; undefined if the driver does not stream it to this agent. */
export type DeviceAttributesLookup = (
  driver: string,
  pool: string,
  device: string,
) => DeviceAttributes | undefined;

/** The devices that drivers stream to this agent. */
export interface ReportedDevices {
  readonly attributesOf: DeviceAttributesLookup;
  /**
   * Calls `callback` when a driver's devices become known, for example after a restart. Returns a function that
   * unsubscribes.
   */
  onKnown(callback: () => void): () => void;
}

/** A running pod with its consumer name in zones. */
export interface ClaimHolder {
  readonly consumer: string;
  readonly claimed: readonly ClaimedDevice[];
}

// Standard attributes: k8s.io/dynamic-resource-allocation/deviceattribute; numaNode: KEP-6072.
const NUMA_NODE = "resource.kubernetes.io/numaNode";
const SHOWN = ["resource.kubernetes.io/pcieRoot", "resource.kubernetes.io/pciBusID"];
// Attributes of drivers that predate the standard, as listed in KEP-6072.
const OWN_NUMA_NODES = ["numaNode", "numaNodeID", "numa"];
const OTHER_NUMA_NODES = ["dra.net/numaNode", "dra.cpu/numaNodeID"];

/**
 * Creates a zone for each DRA device allocated to a pod, below the NUMA node in the device's attributes. Capacity and
 * availability are in ResourceSlices and unknown here, so the zones have only allocations and are not counted on NUMA
 * nodes. Several pods may use one device, through one or several claims.
 * @param zoneTypes zone types by driver name
 * @returns the zones of devices whose NUMA node is unknown
 */
export function enterClaimedDevices(
  { nodes, problems }: ZoneTree,
  holders: readonly ClaimHolder[],
  zoneTypes: ReadonlyMap<string, string>,
  attributesOf: DeviceAttributesLookup,
): ZoneLedger[] {
  const apart: ZoneLedger[] = [];
  for (const [driver, devices] of collect(holders, problems)) {
    if (devices.size > MAX_ZONES_OF_A_RESOURCE) {
      problems.add(
        `${devices.size} devices of driver ${quote(driver)} are allocated, more than the limit of ${MAX_ZONES_OF_A_RESOURCE} for zones`,
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
        problems.add(`device ${quote(name)} is on NUMA node ${near}, which does not exist`);
      if (node) node.children.push(zone);
      else apart.push(zone);
    }
  }
  return apart;
}

interface Held extends ClaimedDevice {
  readonly consumers: Set<string>;
}

// By driver, then by device name in Kubernetes notation: <driver>/<pool>/<device>.
function collect(holders: readonly ClaimHolder[], problems: Problems): Map<string, Map<string, Held>> {
  const byDriver = new Map<string, Map<string, Held>>();
  for (const { consumer, claimed } of holders) {
    for (const { driver, pool, device } of claimed) {
      if (driver === "" || pool === "" || device === "") {
        problems.add("claims without driver, pool and device names in the kubelet's response");
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

/** Returns a device's NUMA node from the first attribute that has one; undefined if none has. */
function numaNodeOf(driver: string, attributes: DeviceAttributes): number | undefined {
  const own = OWN_NUMA_NODES.flatMap((name) => [name, `${driver}/${name}`]);
  for (const name of [NUMA_NODE, ...own, ...OTHER_NUMA_NODES]) {
    // The first item of a list is the device's own node. The others are close nodes: KEP-6072.
    const value = attributes[name]?.int ?? attributes[name]?.ints?.[0];
    // A negative value means no node, as in the kernel's numa_node files.
    if (value !== undefined && value >= 0) return Number(value);
  }
  return undefined;
}
