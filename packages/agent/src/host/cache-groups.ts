import { readOnlineCpus } from "./cpu-topology.ts";
import { parseCpuList, parseInteger } from "./parse.ts";
import type { Probe } from "./probe.ts";

/** CPUs that share one L3 cache. */
export interface CacheGroup {
  /** The kernel's number of the cache; that of its first CPU where the kernel gives none. */
  id: number;
  /** Sorted, offline ones left out. */
  cpus: readonly number[];
}

const CPU_ROOT = "/sys/devices/system/cpu";

/** The groups of online CPUs by L3 cache; empty where the machine does not report caches, as many virtual ones. */
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

// index3 is the L3 cache where there is one: the kernel numbers L1 data, L1 instruction, L2 and L3 in this order.
function readGroup(probe: Probe, cpu: number, online: readonly number[]): CacheGroup | undefined {
  const cache = `${CPU_ROOT}/cpu${cpu}/cache/index3`;
  if (probe.optionalKernelText(`${cache}/level`) !== "3") return undefined;
  const shared = probe.parsed(cache, probe.optionalKernelText(`${cache}/shared_cpu_list`), parseCpuList);
  if (!shared) return undefined;
  const id = probe.parsed(cache, probe.optionalKernelText(`${cache}/id`), parseInteger);
  return { id: id ?? cpu, cpus: shared.filter((each) => online.includes(each)) };
}
