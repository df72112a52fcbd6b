import { NodekeeperError } from "@nodekeeper/core/lib";
import type { CacheGroup, Host, LogicalCpu, NumaNode, Reading } from "../../host/index.ts";

/** A NUMA node with its socket. */
export interface MachineNode extends NumaNode {
  /** Undefined for a node without CPUs, such as a memory-only node. */
  socket?: number;
  /** Each CPU with the other thread of its core, sorted, if cores have two threads. */
  threadSiblings?: readonly (readonly [cpu: number, sibling: number])[];
  /** L3 caches, if the node has more than one. */
  cacheGroups?: readonly CacheGroup[];
}

/** The NUMA nodes of the machine, sorted by ID. */
export type Machine = readonly MachineNode[];

/**
 * Assigns each NUMA node to the socket of its first CPU. If NUMA is disabled in firmware, a node spans several sockets,
 * which a tree of zones can't represent. If the machine reports no sockets, all CPUs are in socket 0.
 */
export function machineOf(
  nodes: readonly NumaNode[],
  cpus: readonly LogicalCpu[],
  caches: readonly CacheGroup[] = [],
): Machine {
  const sockets = new Map(cpus.map(({ id, socket }) => [id, socket]));
  const threads = new Map(cpus.map(({ id, threads }) => [id, threads]));
  return nodes
    .map((node) => {
      const [first] = node.cpus;
      if (first === undefined) return node;
      const threadSiblings = node.cpus.flatMap((cpu) => {
        const [sibling, third] = threads.get(cpu)?.filter((thread) => thread !== cpu) ?? [];
        return sibling === undefined || third !== undefined ? [] : [[cpu, sibling] as const];
      });
      // A cache that spans nodes can't be placed below one of them.
      const cacheGroups = caches.filter(({ cpus }) => cpus.every((cpu) => node.cpus.includes(cpu)));
      return {
        ...node,
        socket: sockets.get(first) ?? 0,
        ...(threadSiblings.length > 0 ? { threadSiblings } : {}),
        ...(cacheGroups.length > 1 ? { cacheGroups } : {}),
      };
    })
    .sort((a, b) => a.id - b.id);
}

/** Reads the machine repeatedly. NUMA nodes and sockets are read again only after hotplug of CPUs or memory. */
export class MachineReader {
  readonly #host: Host;
  #known: { machine: Machine; mark: string } | undefined;

  constructor(host: Host) {
    this.#host = host;
  }

  /** Reads the machine. Throws, for example `unavailable`, if any part can't be read. */
  async read(signal: AbortSignal): Promise<Machine> {
    // Each of these two is one small file. The topology takes two files per CPU.
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

// A partial reading would look as if a part of the machine had been removed.
function complete<T>(reading: Reading<T>, what: string): T {
  if (reading.state === "failed") throw reading.error;
  if (reading.state !== "read") throw new NodekeeperError("unavailable", `${what}: ${reading.message}`);
  if (reading.problems[0]) throw reading.problems[0];
  return reading.value;
}
