import type { CpuTopology, Host, NumaNode, Reading } from "../../host/index.ts";
import { NodekeeperError } from "../../lib/index.ts";

/** A NUMA node and the socket it belongs to. */
export interface MachineNode extends NumaNode {
  /** Absent for a node without CPUs, such as one of memory alone. */
  socket?: number;
}

/** The NUMA nodes of the machine, by number. */
export type Machine = readonly MachineNode[];

/**
 * Puts each NUMA node into the socket of its first CPU. Where the firmware switched NUMA off, a node spans several
 * sockets, and no tree of zones can show that. Where the machine tells of no sockets, all its CPUs are in socket 0.
 */
export function machineOf(nodes: readonly NumaNode[], topology: CpuTopology | undefined): Machine {
  const sockets = new Map(topology?.cpus.map(({ id, socket }) => [id, socket]));
  return nodes
    .map((node) => {
      const [first] = node.cpus;
      return first === undefined ? node : { ...node, socket: sockets.get(first) ?? 0 };
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
    const [nodes, topology] = await Promise.all([
      this.#host.numaNodes(signal),
      this.#host.cpuTopology(signal),
    ]);
    const machine = machineOf(complete(nodes, "NUMA nodes"), complete(topology, "CPU topology"));
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
