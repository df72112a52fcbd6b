import { countListedCpus } from "./cpu-info.ts";
import type { Probe } from "./probe.ts";

/** A logical CPU and where it sits. */
export interface LogicalCpu {
  id: number;
  /** The physical package; absent where the machine does not report it. */
  socket?: number;
  /** Unique within its socket. */
  core?: number;
}

export interface CpuTopology {
  /** CPUs the kernel schedules on, sorted. */
  online: readonly number[];
  /** CPUs that are there, online or not, sorted. */
  present: readonly number[];
  /** One for each online CPU, in the order of `online`. */
  cpus: readonly LogicalCpu[];
  /** Numbers of sockets and physical cores with an online CPU; absent where the machine does not report it. */
  sockets?: number;
  cores?: number;
}

const CPU_ROOT = "/sys/devices/system/cpu";

/** The online CPUs alone: one small file, for asking often. */
export async function readOnlineCpus(probe: Probe): Promise<number[] | undefined> {
  const online = probe.kernelCpuList(`${CPU_ROOT}/online`);
  if (online) return online.length > 0 ? online : undefined;
  const count = await countListedCpus(probe);
  return count === undefined ? undefined : Array.from({ length: count }, (_, id) => id);
}

/** CPUs with their sockets and cores; undefined where neither sysfs nor /proc/cpuinfo lists any. */
export async function readCpuTopology(probe: Probe): Promise<CpuTopology | undefined> {
  const online = await readOnlineCpus(probe);
  if (!online) return undefined;
  const present = (await probe.cpuList(`${CPU_ROOT}/present`)) ?? online;
  const cpus = await Promise.all(online.map((id) => readCpu(probe, id)));

  const sockets = new Set(cpus.map((cpu) => cpu.socket));
  const cores = new Set(cpus.map((cpu) => `${cpu.socket}/${cpu.core}`));
  const allPlaced = cpus.every((cpu) => cpu.socket !== undefined && cpu.core !== undefined);
  return { online, present, cpus, ...(allPlaced ? { sockets: sockets.size, cores: cores.size } : {}) };
}

async function readCpu(probe: Probe, id: number): Promise<LogicalCpu> {
  const topology = `${CPU_ROOT}/cpu${id}/topology`;
  const [socket, core] = await Promise.all([
    probe.integer(`${topology}/physical_package_id`),
    probe.integer(`${topology}/core_id`),
  ]);
  // arm64 virtual machines without a topology table report -1.
  return {
    id,
    ...(socket !== undefined && socket >= 0 ? { socket } : {}),
    ...(core !== undefined && core >= 0 ? { core } : {}),
  };
}
