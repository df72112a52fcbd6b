import { NodekeeperError } from "@nodekeeper/core/lib";
import type { Probe } from "./probe.ts";

/** CPU time since boot, summed over all CPUs, in ticks. */
export interface CpuTimes {
  busyTicks: number;
  totalTicks: number;
  /** Number of online CPUs. */
  cpus: number;
}

/** CPU usage between two readings. */
export interface CpuUse {
  /** Fraction of all CPUs, 0 to 1. */
  share: number;
  cpus: number;
}

// The "intr" line takes about ten bytes per interrupt; large machines have tens of thousands.
const STAT_CAP = 1024 * 1024;
const PATH = "/proc/stat";

/** Reads the CPU lines of /proc/stat. Undefined if the file is absent. */
export async function readCpuTimes(probe: Probe): Promise<CpuTimes | undefined> {
  const text = await probe.text(PATH, { cap: STAT_CAP, truncate: true });
  return probe.parsed(PATH, text, parseCpuTimes);
}

/** Parses /proc/stat. Throws `invalid`. */
export function parseCpuTimes(text: string): CpuTimes {
  const match = /^cpu +([\d ]+)$/m.exec(text);
  const ticks = (match?.[1] ?? "").trim().split(/ +/).map(Number);
  // user, nice, system, idle, iowait, irq, softirq, steal. guest and guest_nice are already part of user and nice.
  const [user = 0, nice = 0, system = 0, idle = 0, ioWait = 0, irq = 0, softIrq = 0, steal = 0] = ticks;
  const cpus = text.match(/^cpu\d+ /gm)?.length ?? 0;
  if (ticks.length < 4 || cpus === 0) {
    throw new NodekeeperError("invalid", "it has no CPU times");
  }
  // Steal time counts as busy: no process on this machine could have used it.
  const busyTicks = user + nice + system + irq + softIrq + steal;
  return { busyTicks, totalTicks: busyTicks + idle + ioWait, cpus };
}

/**
 * Returns the usage between two readings. Undefined if no time passed, or if a counter decreased, as on some kernels.
 */
export function cpuUseBetween(before: CpuTimes, after: CpuTimes): CpuUse | undefined {
  const total = after.totalTicks - before.totalTicks;
  const busy = after.busyTicks - before.busyTicks;
  if (total <= 0 || busy < 0 || busy > total) return undefined;
  return { share: busy / total, cpus: after.cpus };
}
