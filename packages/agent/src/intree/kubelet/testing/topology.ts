import type { Devices, KubeletAnswer, MemoryBlock, PodHolding } from "../answer.ts";
import type { Machine } from "../machine.ts";
import { topologyZones, type ZoneInput } from "../topology-zones.ts";

export const GiB = 1024 ** 3;
/** A machine with one NUMA node. */
export const oneSocket: Machine = [{ id: 0, cpus: [0, 1, 2, 3], memoryBytes: 8 * GiB, socket: 0 }];
/** A machine with two sockets of one NUMA node each. */
export const twoSockets: Machine = [
  { id: 0, cpus: [0, 1, 4, 5], memoryBytes: 64 * GiB, socket: 0 },
  { id: 1, cpus: [2, 3, 6, 7], memoryBytes: 32 * GiB, socket: 1 },
];
/** An empty part of the kubelet's response. */
export const nothing = { devices: [], cpus: [], memory: [] };

/** Returns a pod with its allocations. */
export const pod = (name: string, held: Partial<PodHolding>): PodHolding => ({
  ...nothing,
  claimed: [],
  namespace: "default",
  name,
  ...held,
});
/** Returns devices of a resource, with their NUMA nodes. */
export const gpus = (ids: string[], ...nodes: number[]): Devices => ({
  resource: "example.com/gpu",
  ids,
  nodes,
});
/** Returns a block of memory, with its NUMA nodes. */
export const memory = (gib: number, ...nodes: number[]): MemoryBlock => ({
  type: "memory",
  bytes: BigInt(gib * GiB),
  nodes,
});

/** Returns the zones of a machine for a response of the kubelet. */
export function convert(machine: Machine, answer: Partial<KubeletAnswer>, rest: Partial<ZoneInput> = {}) {
  return topologyZones({
    machine,
    answer: { allocatable: nothing, pods: [], ...answer },
    deviceZones: new Map([
      ["example.com/gpu", "GPU"],
      ["example.com/gpu-memory", "GPU"],
    ]),
    siblingNumaMaxDistance: 0,
    deviceAttributes: () => undefined,
    podUid: (_, name) => (name.startsWith("unknown") ? undefined : `uid-${name}`),
    ...rest,
  });
}

/** Returns all zones by path, which consists of types and names. */
export function byName(zones: ReturnType<typeof convert>["zones"]) {
  const all: Record<string, (typeof zones)[number]> = {};
  const visit = (list: typeof zones, path: string) => {
    for (const zone of list) {
      const at = `${path}${zone.type}${zone.name}`;
      all[at] = zone;
      visit(zone.children ?? [], `${at}/`);
    }
  };
  visit(zones, "");
  return all;
}
