import { countListedCpus } from "./cpu-info.ts";
import { parseCpuList, parseInteger } from "./parse.ts";
import type { Probe } from "./probe.ts";

/** A logical CPU and its position in the topology. */
export interface LogicalCpu {
  id: number;
  /** Physical package ID; absent if the machine does not report it. */
  socket?: number;
  /** Online CPUs of the same core, including this one; absent if the machine does not report them. */
  threads?: readonly number[];
}

/** CPUs that share one L3 cache. */
export interface CacheGroup {
  /** Cache ID assigned by the kernel; the group's first CPU if the kernel reports none. */
  id: number;
  /** Online CPUs, sorted. */
  cpus: readonly number[];
}

const CPU_ROOT = "/sys/devices/system/cpu";

/** Reads only the online CPUs: one small file, cheap enough for frequent reads. */
export async function readOnlineCpus(probe: Probe): Promise<number[] | undefined> {
  const online = probe.kernelCpuList(`${CPU_ROOT}/online`);
  if (online) return online.length > 0 ? online : undefined;
  const count = await countListedCpus(probe);
  return count === undefined ? undefined : Array.from({ length: count }, (_, id) => id);
}

/** Reads the online CPUs with their sockets and the threads of their cores. Undefined if neither sysfs nor /proc/cpuinfo lists any. */
export async function readCpuTopology(probe: Probe): Promise<LogicalCpu[] | undefined> {
  const online = await readOnlineCpus(probe);
  return online && (await Promise.all(online.map((id) => readCpu(probe, id))));
}

async function readCpu(probe: Probe, id: number): Promise<LogicalCpu> {
  const topology = `${CPU_ROOT}/cpu${id}/topology`;
  const [socket, threads] = await Promise.all([
    probe.integer(`${topology}/physical_package_id`),
    // core_id is unique only within a die (x86) or a cluster (arm64).
    probe.cpuList(`${topology}/thread_siblings_list`),
  ]);
  // arm64 virtual machines without a topology table report -1.
  return {
    id,
    ...(socket !== undefined && socket >= 0 ? { socket } : {}),
    ...(threads ? { threads } : {}),
  };
}

/** Groups the online CPUs by L3 cache. Empty if the machine does not report caches, as many virtual machines do not. */
export async function readCacheGroups(probe: Probe): Promise<CacheGroup[] | undefined> {
  const online = await readOnlineCpus(probe);
  if (!online) return undefined;
  const groups: CacheGroup[] = [];
  const seen = new Set<number>();
  for (const cpu of online) {
    if (seen.has(cpu)) continue;
    const group = readGroup(probe, cpu, online);
    if (!group) continue;
    groups.push(group);
    for (const each of group.cpus) seen.add(each);
  }
  return groups;
}

// index3 is the L3 cache, if present: the kernel numbers L1 data, L1 instruction, L2 and L3 in this order.
function readGroup(probe: Probe, cpu: number, online: readonly number[]): CacheGroup | undefined {
  const cache = `${CPU_ROOT}/cpu${cpu}/cache/index3`;
  if (probe.optionalKernelText(`${cache}/level`) !== "3") return undefined;
  const shared = probe.parsed(cache, probe.optionalKernelText(`${cache}/shared_cpu_list`), parseCpuList);
  if (!shared) return undefined;
  const id = probe.parsed(cache, probe.optionalKernelText(`${cache}/id`), parseInteger);
  return { id: id ?? cpu, cpus: shared.filter((each) => online.includes(each)) };
}
