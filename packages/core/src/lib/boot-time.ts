import { readFileSync } from "node:fs";

/** How long the machine has been up, and which boot that was. Unlike wall time it can't be set. */
export interface BootTime {
  /** Changes with each boot. */
  id: string;
  /** Milliseconds since then, suspended time included. */
  uptimeMs: number;
}

/** Reads it from /proc; undefined where there is none, as on systems other than Linux. */
export function readBootTime(): BootTime | undefined {
  try {
    const id = readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim();
    const uptimeMs = Math.round(Number.parseFloat(readFileSync("/proc/uptime", "utf8")) * 1000);
    return id !== "" && Number.isFinite(uptimeMs) ? { id, uptimeMs } : undefined;
  } catch {
    return undefined;
  }
}
