import { NodekeeperError } from "@nodekeeper/core/lib";
import type { CacheGroup, CpuTopology, Host, NumaNode, Reading } from "../../host/index.ts";

/** A NUMA node with its socket. */
export interface MachineNode extends NumaNode {
  /** Absent for a node without CPUs, such as a memory-only node. */
  socket?: number;
  /** L3 caches, if the node has more than one. */
  cacheGroups?: readonly CacheGroup[];
}

/** The NUMA nodes of the machine, sorted by ID. */
export type Machine = readonly MachineNode[];

/**
 * Assigns each NUMA node to the socket of its first CPU. With NUMA disabled in firmware, a node spans several sockets,
 * which a tree of zones cannot represent. If the machine reports no sockets, all CPUs are in socket 0.
 */
export function machineOf(
  nodes: readonly NumaNode[],
  topology: CpuTopology | undefined,
  caches: readonly CacheGroup[] = [],
): Machine {
  const sockets = new Map(topology?.cpus.map(({ id, socket }) => [id, socket]));
  return nodes
    .map((node) => {
      const [first] = node.cpus;
      if (first === undefined) return node;
      // A cache that spans nodes cannot be placed below one of them.
      const cacheGroups = caches.filter(({ cpus }) => cpus.every((cpu) => node.cpus.includes(cpu)));
      return {
        ...node,
        socket: sockets.get(first) ?? 0,
        ...(cacheGroups.length > 1 ? { cacheGroups } : {}),
      };
    })
    .sort((a, b) => a.id - b.id);
}

/** Reads the machine repeatedly; NUMA nodes and sockets only after hotplug of CPUs or memory. */
export class MachineReader {
  readonly #host: Host;
  #known: { machine: Machine; mark: string } | undefined;

  constructor(host: Host) {
    this.#host = host;
  }

  /** Reads the machine. Throws, for example `unavailable`, if a part of it cannot be read. */
  async read(signal: AbortSignal): Promise<Machine> {
    // These two are one small file each; the topology takes two files for each CPU.
    const [online, memory] = await Promise.all([
      this.#host.onlineCpus(signal),
      this.#host.memoryTotal(signal),
    ]);
    const mark = `${complete(online, "online CPUs").join()} ${complete(memory, "memory total")}`;
    if (this.#known?.mark === mark) return this.#known.machine;
    const [nodes, topology, caches] = await Promise.all([
      this.#host.numaNodes(signal),
      this.#host.cpuTopology(signal),
      this.#host.cacheGroups(signal),
    ]);
    const machine = machineOf(
      complete(nodes, "NUMA nodes"),
      complete(topology, "CPU topology"),
      complete(caches, "L3 caches"),
    );
    this.#known = { machine, mark };
    return machine;
  }
}

// Zones from a partial reading would look as if a part of the machine had been removed.
function complete<T>(reading: Reading<T>, what: string): T {
  if (reading.state === "failed") throw reading.error;
  if (reading.state !== "read") throw new NodekeeperError("unavailable", `${what}: ${reading.message}`);
  if (reading.problems[0]) throw reading.problems[0];
  return reading.value;
}
