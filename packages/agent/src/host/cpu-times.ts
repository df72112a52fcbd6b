import { NodekeeperError } from "@nodekeeper/core/lib";
import type { Probe } from "./probe.ts";

/** What all CPUs together have done since boot, in the kernel's ticks. */
export interface CpuTimes {
  busyTicks: number;
  totalTicks: number;
  /** CPUs that are online. */
  cpus: number;
}

/** How busy the CPUs were between two looks. */
export interface CpuUse {
  /** 0 to 1, of all CPUs. */
  share: number;
  /** CPUs' worth of work. */
  cores: number;
  cpus: number;
  /** The time between the looks, milliseconds. */
  windowMs: number;
}

// The line of interrupts has ten bytes for each, and a large machine has tens of thousands of them.
const STAT_CAP = 1024 * 1024;
const PATH = "/proc/stat";

/** The CPU lines of /proc/stat; undefined where it is absent. */
export async function readCpuTimes(probe: Probe): Promise<CpuTimes | undefined> {
  const text = await probe.text(PATH, { cap: STAT_CAP, truncate: true });
  return probe.parsed(PATH, text, parseCpuTimes);
}

/** Reads the text of /proc/stat. Throws `invalid`. */
export function parseCpuTimes(text: string): CpuTimes {
  const match = /^cpu +([\d ]+)$/m.exec(text);
  const ticks = (match?.[1] ?? "").trim().split(/ +/).map(Number);
  // user, nice, system, idle, iowait, irq, softirq, steal; guest and guest_nice are in user and nice already.
  const [user = 0, nice = 0, system = 0, idle = 0, ioWait = 0, irq = 0, softIrq = 0, steal = 0] = ticks;
  const cpus = text.match(/^cpu\d+ /gm)?.length ?? 0;
  if (ticks.length < 4 || cpus === 0) {
    throw new NodekeeperError("invalid", "there are no times of CPUs");
  }
  // What the hypervisor gave to others was not idle: no process here could have used it.
  const busyTicks = user + nice + system + irq + softIrq + steal;
  return { busyTicks, totalTicks: busyTicks + idle + ioWait, cpus };
}

/** The use between two looks; undefined where no time went by, or counters went back as they do in some kernels. */
export function cpuUseBetween(before: CpuTimes, after: CpuTimes, windowMs: number): CpuUse | undefined {
  const total = after.totalTicks - before.totalTicks;
  const busy = after.busyTicks - before.busyTicks;
  if (total <= 0 || busy < 0 || busy > total) return undefined;
  return { share: busy / total, cores: (busy / total) * after.cpus, cpus: after.cpus, windowMs };
}
