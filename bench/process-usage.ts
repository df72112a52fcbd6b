import { readFileSync } from "node:fs";

/** CPU time that a process has used so far, seconds, in steps of 10 ms. */
export function cpuSecondsOf(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  const [utime = 0, stime = 0] = stat.slice(stat.lastIndexOf(")")).split(" ").slice(12, 14).map(Number);
  // USER_HZ is 100 on every Linux that Node runs on.
  return (utime + stime) / 100;
}

/** Returns a field of /proc/PID/status (proc_pid_status(5)), in MiB. */
export function residentMbOf(pid: number, field: "VmRSS" | "VmHWM" | "RssAnon"): number {
  const status = readFileSync(`/proc/${pid}/status`, "utf8");
  return Number(new RegExp(`${field}:\\s+(\\d+)`).exec(status)?.[1]) / 1024;
}
