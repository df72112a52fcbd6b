import { quote } from "@nodekeeper/core/lib";
import type { Devices, KubeletAnswer } from "./answer.ts";
import { add, ZoneLedger, type ZoneTree } from "./zones.ts";

/** A pod with allocations and its consumer name in zones; undefined if its UID is unknown. */
export interface DeviceHolder {
  readonly consumer: string | undefined;
  readonly devices: readonly Devices[];
}

/**
 * Limit of zones for one resource. Device plugins may offer thousands of shares of a device; above the limit they are
 * only counted.
 */
export const MAX_ZONES_OF_A_RESOURCE = 1_024;

interface Device {
  readonly resource: string;
  readonly id: string;
  readonly nodes: Set<number>;
  isAllocatable: boolean;
  readonly holders: Set<string>;
}

/**
 * Counts devices on the NUMA nodes to which they have affinity, and creates a zone for each device whose resource has a
 * zone type. The capacity is the number of healthy or allocated devices: the kubelet does not report unhealthy devices
 * that are not allocated. A device with affinity to several nodes counts on each, as in katalyst. The zone of a device
 * without affinity is placed beside the sockets.
 * @param zoneTypes zone types by resource name
 * @returns the zones of devices without affinity
 */
export function enterDevices(
  tree: ZoneTree,
  allocatable: KubeletAnswer["allocatable"],
  holders: readonly DeviceHolder[],
  zoneTypes: ReadonlyMap<string, string>,
): ZoneLedger[] {
  const { nodes, problems } = tree;
  const byResource = collect(tree, allocatable, holders);
  const zones = new Map<string, { ledger: ZoneLedger; nodes: Set<number> }>();
  for (const [resource, devices] of byResource) {
    for (const device of devices.values()) {
      for (const node of device.nodes) enter(nodes.get(node)!, device);
    }
    const type = zoneTypes.get(resource);
    if (type === undefined) continue;
    if (devices.size > MAX_ZONES_OF_A_RESOURCE) {
      problems.add(
        `${quote(resource)} has ${devices.size} devices, more than the limit of ${MAX_ZONES_OF_A_RESOURCE} for zones`,
      );
      continue;
    }
    for (const device of devices.values()) {
      const key = JSON.stringify([type, device.id]);
      const zone = zones.get(key) ?? { ledger: new ZoneLedger(type, device.id), nodes: new Set() };
      zones.set(key, zone);
      enter(zone.ledger, device);
      for (const node of device.nodes) zone.nodes.add(node);
    }
  }
  const apart: ZoneLedger[] = [];
  for (const { ledger, nodes: near } of zones.values()) {
    for (const node of near) nodes.get(node)!.children.push(ledger);
    if (near.size === 0) apart.push(ledger);
  }
  return apart;
}

function enter(ledger: ZoneLedger, { resource, isAllocatable, holders }: Device): void {
  add(ledger.capacity, resource, 1n);
  add(ledger.allocatable, resource, isAllocatable ? 1n : 0n);
  for (const consumer of holders) ledger.hold(consumer, resource, 1n);
}

function collect(
  { nodes, problems }: ZoneTree,
  allocatable: KubeletAnswer["allocatable"],
  holders: readonly DeviceHolder[],
): Map<string, Map<string, Device>> {
  const byResource = new Map<string, Map<string, Device>>();
  const visit = ({ resource, ids, nodes: near }: Devices, onDevice: (device: Device) => void) => {
    if (resource === "") return problems.add("devices of a resource without a name");
    const devices = byResource.get(resource) ?? new Map<string, Device>();
    byResource.set(resource, devices);
    for (const id of ids) {
      const device = devices.get(id) ?? {
        resource,
        id,
        nodes: new Set(),
        isAllocatable: false,
        holders: new Set(),
      };
      devices.set(id, device);
      for (const node of near) {
        if (nodes.has(node)) device.nodes.add(node);
        else problems.add(`${quote(resource)} is on NUMA node ${node}, which does not exist`);
      }
      onDevice(device);
    }
  };
  for (const devices of allocatable.devices) {
    visit(devices, (device) => {
      device.isAllocatable = true;
    });
  }
  for (const { consumer, devices: held } of holders) {
    for (const devices of held) {
      visit(devices, (device) => {
        if (consumer !== undefined) device.holders.add(consumer);
      });
    }
  }
  return byResource;
}
