import type { Probe } from "./probe.ts";

/** A process and its command line. */
export interface FoundProcess {
  pid: number;
  arguments: readonly string[];
}

/** Number of threads on the host. Threads and processes share the PID space. */
export interface PidState {
  /** The lower of kernel.pid_max and kernel.threads-max. */
  max: number;
  current: number;
}

const NUMBER = /^\d+$/;

/** Reads the number of threads and its limit. Undefined if the kernel does not report both. */
export function pidState(probe: Probe, max = pidLimitOf(probe)): PidState | undefined {
  const load = probe.kernelText("/proc/loadavg");
  const current = load === undefined ? undefined : threadsOf(load);
  return max === undefined || current === undefined ? undefined : { max, current };
}

/** Returns the lower of the kernel's limits. Undefined if it reports neither. */
export function pidLimitOf(probe: Probe): number | undefined {
  const limits = ["pid_max", "threads-max"]
    .map((name) => probe.kernelInteger(`/proc/sys/kernel/${name}`))
    .filter((limit) => limit !== undefined && limit > 0) as number[];
  return limits.length === 0 ? undefined : Math.min(...limits);
}

/** Reads the one-minute load average. Undefined if the kernel does not report it. */
export function loadAverage(probe: Probe): number | undefined {
  const match = /^(\d{1,9}\.\d\d) /.exec(probe.kernelText("/proc/loadavg") ?? "");
  return match ? Number(match[1]) : undefined;
}

/** Returns the number of threads in /proc/loadavg: 93 for "0.00 0.09 0.49 1/93 6789". */
export function threadsOf(loadAverage: string): number | undefined {
  const match = /^(?:\S+ ){3}\d+\/(\d{1,9}) /.exec(loadAverage);
  return match ? Number(match[1]) : undefined;
}

/**
 * Finds the process with this name (at most 15 characters, as in /proc/<pid>/comm). Undefined if none runs or if other
 * processes are not visible.
 * @param known PID at which it was last found; the others are read only if that process no longer has the name
 */
export async function findProcess(
  probe: Probe,
  name: string,
  known: number | undefined,
): Promise<FoundProcess | undefined> {
  const hasName = (pid: string) => probe.optionalKernelText(`/proc/${pid}/comm`) === name;
  const pid =
    known !== undefined && hasName(String(known))
      ? String(known)
      : (await probe.list("/proc"))?.filter((entry) => NUMBER.test(entry)).find(hasName);
  const line = pid === undefined ? undefined : await probe.optionalText(`/proc/${pid}/cmdline`);
  if (line === undefined) return undefined;
  return { pid: Number(pid), arguments: line.split("\0").filter((argument) => argument !== "") };
}
