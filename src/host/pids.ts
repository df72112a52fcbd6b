import type { Probe } from "./probe.ts";

/** Threads on the machine, which share one space of process numbers. */
export interface PidState {
  /** The lower of kernel.pid_max and kernel.threads-max. */
  max: number;
  current: number;
}

/** Undefined where the limits or the number of threads are not told. */
export async function readPids(probe: Probe): Promise<PidState | undefined> {
  const load = probe.kernelText("/proc/loadavg");
  const limits = ["pid_max", "threads-max"]
    .map((name) => probe.kernelInteger(`/proc/sys/kernel/${name}`))
    .filter((limit) => limit !== undefined)
    .filter((limit) => limit > 0);
  const current = load === undefined ? undefined : threadsOf(load);
  if (limits.length === 0 || current === undefined) return undefined;
  return { max: Math.min(...limits), current };
}

/** The number of threads in the text of /proc/loadavg: "0.00 0.09 0.49 1/93 6789" has 93. */
export function threadsOf(loadAverage: string): number | undefined {
  const match = /^(?:\S+ ){3}\d+\/(\d{1,9}) /.exec(loadAverage);
  return match ? Number(match[1]) : undefined;
}
