import { NodekeeperError } from "@nodekeeper/core/lib";
import type { CacheGroup, CpuTopology, Host, NumaNode, Reading } from "../../host/index.ts";

/** A NUMA node and the socket it belongs to. */
export interface MachineNode extends NumaNode {
  /** Absent for a node without CPUs, such as one of memory alone. */
  socket?: number;
  /** L3 caches of which the node has more than one; of a single one there is nothing to say. */
  cacheGroups?: readonly CacheGroup[];
}

/** The NUMA nodes of the machine, by number. */
export type Machine = readonly MachineNode[];

/**
 * Puts each NUMA node into the socket of its first CPU. Where the firmware switched NUMA off, a node spans several
 * sockets, and no tree of zones can show that. Where the machine tells of no sockets, all its CPUs are in socket 0.
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
      // A cache that spans nodes has no place below one of them.
      const cacheGroups = caches.filter(({ cpus }) => cpus.every((cpu) => node.cpus.includes(cpu)));
      return {
        ...node,
        socket: sockets.get(first) ?? 0,
        ...(cacheGroups.length > 1 ? { cacheGroups } : {}),
      };
    })
    .sort((a, b) => a.id - b.id);
}

/** Reads the machine again and again; NUMA nodes and sockets only when CPUs or memory came or went. */
export class MachineReader {
  readonly #host: Host;
  #known: { machine: Machine; mark: string } | undefined;

  constructor(host: Host) {
    this.#host = host;
  }

  /** The machine as it is now. Throws `unavailable` and the like where a part of it can't be read. */
  async read(signal: AbortSignal): Promise<Machine> {
    // One small file each; the whole takes two for each CPU.
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

// Zones made of half a reading would look as if a part of the machine had gone.
function complete<T>(reading: Reading<T>, what: string): T {
  if (reading.state === "failed") throw reading.error;
  if (reading.state !== "read") throw new NodekeeperError("unavailable", `${what}: ${reading.message}`);
  if (reading.problems[0]) throw reading.problems[0];
  return reading.value;
}
