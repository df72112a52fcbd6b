import { statValue } from "./cgroup-memory.ts";
import type { KernelFiles } from "./kernel-files.ts";

/** Counters of a pod's cgroup; what the kernel does not report is undefined. */
export interface PodCounters {
  /** CPU time used since the cgroup was created, seconds. */
  cpuSeconds: number | undefined;
  /** Processes and threads now. */
  pids: number | undefined;
}

/** What a pod does: the rate between two looks at its counters. */
export interface PodActivity {
  /** CPUs, such as 0.25; undefined after the first look at the pod. */
  cpu: number | undefined;
  pids: number | undefined;
}

/** Reads the counters of a pod's cgroup. @param root where cgroups are mounted @param isV2 whether of version 2 */
export function podCounters(files: KernelFiles, root: string, isV2: boolean, cgroup: string): PodCounters {
  if (isV2) {
    const microseconds = statValue(files.text(`${root}${cgroup}/cpu.stat`) ?? "", "usage_usec");
    return {
      cpuSeconds: microseconds === undefined ? undefined : microseconds / 1e6,
      pids: wholeNumber(files.text(`${root}${cgroup}/pids.current`)),
    };
  }
  const nanoseconds = wholeNumber(files.text(`${root}/cpuacct${cgroup}/cpuacct.usage`));
  return {
    cpuSeconds: nanoseconds === undefined ? undefined : nanoseconds / 1e9,
    pids: wholeNumber(files.text(`${root}/pids${cgroup}/pids.current`)),
  };
}

/** CPUs used between two looks; undefined where no time passed, or where a counter went back: another pod's cgroup. */
export function cpuBetween(
  before: PodCounters | undefined,
  after: PodCounters,
  elapsedMs: number,
): number | undefined {
  if (before?.cpuSeconds === undefined || after.cpuSeconds === undefined || elapsedMs <= 0) return undefined;
  const seconds = after.cpuSeconds - before.cpuSeconds;
  return seconds < 0 ? undefined : (seconds * 1000) / elapsedMs;
}

function wholeNumber(text: string | undefined): number | undefined {
  const trimmed = text?.trim() ?? "";
  return /^\d{1,19}$/.test(trimmed) ? Number(trimmed) : undefined;
}
