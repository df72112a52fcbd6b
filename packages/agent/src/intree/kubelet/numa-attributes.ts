import type { Machine, MachineNode } from "./machine.ts";
import type { ZoneLedger } from "./zones.ts";

// Names and values from katalyst-core pkg/consts/cnr.go.
const NUMA_DISTANCE = "numa_distance";
const THREAD_TOPOLOGY = "thread_topology_info";
const RESERVED_CPUS = "reserved_cpu_list";

export interface NumaAttributesInput {
  machine: Machine;
  nodes: ReadonlyMap<number, ZoneLedger>;
  /** CPUs that the kubelet can allocate exclusively; empty if it allocates none. */
  allocatableCpus: readonly number[];
  /** As in `ZoneInput`. */
  siblingNumaMaxDistance: number;
}

/**
 * Adds attributes and siblings of NUMA nodes: the distances to all nodes, the other thread of each CPU's core, and the
 * CPUs that the kubelet reserves for the system.
 */
export function enterNumaAttributes(input: NumaAttributesInput): void {
  const { machine, nodes, siblingNumaMaxDistance } = input;
  const allocatable = new Set(input.allocatableCpus);
  for (const node of machine) {
    const { distances, threadSiblings = [] } = node;
    const { attributes, siblings } = nodes.get(node.id)!;
    if (distances) attributes.push({ name: NUMA_DISTANCE, value: distances.join(",") });
    if (threadSiblings.length > 0) {
      const value = threadSiblings.map(([cpu, other]) => `${cpu}:${other}`).join(",");
      attributes.push({ name: THREAD_TOPOLOGY, value });
    }
    // An empty list means that the kubelet assigns no exclusive CPUs: the reserved ones are unknown.
    const reserved = allocatable.size > 0 ? node.cpus.filter((cpu) => !allocatable.has(cpu)) : [];
    if (reserved.length > 0) attributes.push({ name: RESERVED_CPUS, value: cpuListText(reserved) });
    for (const other of siblingsOf(node, machine, siblingNumaMaxDistance))
      siblings.push({ type: "Numa", name: String(other) });
  }
}

/** Returns the nearest nodes, if they are within the maximum distance, like katalyst's GetSiblingNumaInfo. */
function siblingsOf({ id, distances }: MachineNode, machine: Machine, maxDistance: number): number[] {
  if (!distances) return [];
  const others = machine.flatMap((other, at) =>
    other.id === id ? [] : [{ id: other.id, distance: distances[at]! }],
  );
  const nearest = Math.min(...others.map(({ distance }) => distance));
  return nearest > maxDistance
    ? []
    : others.filter(({ distance }) => distance === nearest).map(({ id }) => id);
}

/** Returns a list of CPUs in the kernel's cpulist format, for example "0-3,8". */
export function cpuListText(cpus: readonly number[]): string {
  const ranges: [first: number, last: number][] = [];
  for (const cpu of cpus) {
    const range = ranges.at(-1);
    if (range && cpu === range[1] + 1) range[1] = cpu;
    else ranges.push([cpu, cpu]);
  }
  return ranges.map(([first, last]) => (first === last ? `${first}` : `${first}-${last}`)).join(",");
}
