import { readFileSync } from "node:fs";

/** Identity and uptime of the current boot. Unlike wall clock time, it cannot be set. */
export interface BootTime {
  /** Changes with each boot. */
  id: string;
  /** Milliseconds since boot, including suspended time. */
  uptimeMs: number;
}

/**
 * Returns the verified time since a moment, in milliseconds: the smaller of the differences in wall clock time and
 * uptime. 0 if one of them is unknown or the machine rebooted meanwhile.
 * @param at wall clock milliseconds of the moment; null if unknown
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

/** Reads the boot time from /proc. Undefined if it cannot be read, as on systems other than Linux. */
export function readBootTime(): BootTime | undefined {
  try {
    const id = readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim();
    const uptimeMs = Math.round(Number.parseFloat(readFileSync("/proc/uptime", "utf8")) * 1000);
    return id !== "" && Number.isFinite(uptimeMs) ? { id, uptimeMs } : undefined;
  } catch {
    return undefined;
  }
}
