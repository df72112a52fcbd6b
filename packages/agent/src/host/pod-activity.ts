import { statValue } from "./cgroup-memory.ts";
import type { KernelFiles } from "./kernel-files.ts";
import { wholeNumber } from "./parse.ts";

/** Counters of a pod's cgroup. Undefined if the kernel does not report them. */
export interface PodCounters {
  /** Cumulative CPU time since the cgroup was created, in seconds. */
  cpuSeconds: number | undefined;
  /** Current number of processes and threads. */
  pids: number | undefined;
}

/** Activity of a pod between two readings of its counters. */
export interface PodActivity {
  /** CPU usage in CPUs, such as 0.25. Undefined after the first reading of the pod. */
  cpu: number | undefined;
  pids: number | undefined;
}

/** Reads the counters of a pod's cgroup. @param root mount point of cgroups @param isV2 whether it is cgroup v2 */
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

/**
 * Returns the CPUs used between two readings. Undefined if no time passed, or if the counter decreased because the
 * cgroup was recreated.
 */
export function cpuBetween(
  before: PodCounters | undefined,
  after: PodCounters,
  elapsedMs: number,
): number | undefined {
  if (before?.cpuSeconds === undefined || after.cpuSeconds === undefined || elapsedMs <= 0) return undefined;
  const seconds = after.cpuSeconds - before.cpuSeconds;
  return seconds < 0 ? undefined : (seconds * 1000) / elapsedMs;
}
