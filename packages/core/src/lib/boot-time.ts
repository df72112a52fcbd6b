import { readFileSync } from "node:fs";

/** How long the machine has been up, and which boot that was. Unlike wall time it can't be set. */
export interface BootTime {
  /** Changes with each boot. */
  id: string;
  /** Milliseconds since then, suspended time included. */
  uptimeMs: number;
}

/**
 * The verified time since a moment, milliseconds: the smaller of the differences of wall clock and uptime. 0 if one of them
 * is missing or the machine was rebooted in between.
 * @param at wall milliseconds of the moment, as `now`; null if it is not known
 * @param then boot ID and uptime at that moment
 */
export function elapsedSince(
  { at, boot: then }: { at: number | null; boot: BootTime | null },
  now: number,
  boot: BootTime | undefined,
): number {
  if (at === null || !then || !boot || then.id !== boot.id) return 0;
  return Math.max(0, Math.min(now - at, boot.uptimeMs - then.uptimeMs));
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
