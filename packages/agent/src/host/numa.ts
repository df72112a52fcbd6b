import { readOnlineCpus } from "./cpu-topology.ts";
import { readMemoryTotal } from "./memory.ts";
import { memoryLine } from "./parse.ts";
import type { Probe } from "./probe.ts";

export interface NumaNode {
  id: number;
  /** Online CPUs, sorted. Empty for memory-only nodes. */
  cpus: readonly number[];
  /** In bytes; 0 for nodes without memory. Absent if it is not reported. */
  memoryBytes?: number;
  /** Distances to all nodes, in order of node ID; 10 to the node itself. Absent if they are not reported. */
  distances?: readonly number[];
}

const NODE_ROOT = "/sys/devices/system/node";

/** Lists the NUMA nodes by ID. Kernels without NUMA support lack the directory; the whole machine is then one node. */
export async function readNumaNodes(probe: Probe): Promise<NumaNode[] | undefined> {
  const ids = await probe.cpuList(`${NODE_ROOT}/online`);
  if (ids === undefined && probe.problems.length > 0) return undefined;
  if (!ids?.length) return await wholeMachine(probe);
  return await Promise.all(ids.map((id) => readNode(probe, id, ids.length)));
}

async function readNode(probe: Probe, id: number, nodes: number): Promise<NumaNode> {
  const [cpus, memory, distance] = await Promise.all([
    probe.cpuList(`${NODE_ROOT}/node${id}/cpulist`),
    probe.text(`${NODE_ROOT}/node${id}/meminfo`),
    probe.optionalText(`${NODE_ROOT}/node${id}/distance`),
  ]);
  const distances = distance?.trim().split(/\s+/).map(Number) ?? [];
  const isWhole = distances.length === nodes && distances.every((each) => Number.isInteger(each) && each > 0);
  return withMemory(
    { id, cpus: cpus ?? [], ...(isWhole ? { distances } : {}) },
    memory === undefined ? undefined : memoryLine(memory, "MemTotal"),
  );
}

async function wholeMachine(probe: Probe): Promise<NumaNode[] | undefined> {
  const cpus = await readOnlineCpus(probe);
  return cpus && [withMemory({ id: 0, cpus }, await readMemoryTotal(probe))];
}

function withMemory(node: NumaNode, memoryBytes: number | undefined): NumaNode {
  return memoryBytes === undefined ? node : { ...node, memoryBytes };
}
