import type { Probe } from "./probe.ts";

/** Threads on the machine, which share one space of process numbers. */
export interface PidState {
  /** The lower of kernel.pid_max and kernel.threads-max. */
  max: number;
  current: number;
}

/** Undefined where the limits or the number of threads are not reported. */
export function pidState(probe: Probe, max = pidLimitOf(probe)): PidState | undefined {
  const load = probe.kernelText("/proc/loadavg");
  const current = load === undefined ? undefined : threadsOf(load);
  return max === undefined || current === undefined ? undefined : { max, current };
}

/** The lower of the kernel's limits; undefined where it reports neither. */
export function pidLimitOf(probe: Probe): number | undefined {
  const limits = ["pid_max", "threads-max"]
    .map((name) => probe.kernelInteger(`/proc/sys/kernel/${name}`))
    .filter((limit) => limit !== undefined)
    .filter((limit) => limit > 0);
  return limits.length === 0 ? undefined : Math.min(...limits);
}

/** Tasks that ran or waited to run, the mean of the last minute; undefined where the kernel does not report it. */
export function loadAverage(probe: Probe): number | undefined {
  const match = /^(\d{1,9}\.\d\d) /.exec(probe.kernelText("/proc/loadavg") ?? "");
  return match ? Number(match[1]) : undefined;
}

/** The number of threads in the text of /proc/loadavg: "0.00 0.09 0.49 1/93 6789" has 93. */
export function threadsOf(loadAverage: string): number | undefined {
  const match = /^(?:\S+ ){3}\d+\/(\d{1,9}) /.exec(loadAverage);
  return match ? Number(match[1]) : undefined;
}
