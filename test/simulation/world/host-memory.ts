/** The machine's memory, in KiB. */
export const TOTAL_KB = 16 * 1024 * 1024;
/** Available memory above all thresholds, in percent. */
export const PLENTY = 60;

/** Returns the free memory in bytes, by its percentage. */
export function freeBytes(percent: number): number {
  return Math.floor((TOTAL_KB * percent) / 100) * 1024;
}

/** Returns /proc/meminfo for a percentage of memory that is free. */
export function memoryText(percent: number): string {
  const kb = freeBytes(percent) / 1024;
  const lines = [`MemTotal: ${TOTAL_KB} kB`, `MemFree: ${kb} kB`, `MemAvailable: ${kb} kB`];
  return `${lines.join("\n")}\n`;
}
