import { NodekeeperError } from "@nodekeeper/core/lib";

/** Highest accepted CPU or node ID. Linux supports at most 8192 CPUs. */
const HIGHEST_CPU = 65_535;

/**
 * Parses an unsigned decimal integer of at most 19 digits, ignoring surrounding white space. Undefined for other text.
 */
export function wholeNumber(text: string | undefined): number | undefined {
  const trimmed = text?.trim() ?? "";
  return /^\d{1,19}$/.test(trimmed) ? Number(trimmed) : undefined;
}

/** Parses a decimal integer as sysfs prints it. Throws `invalid`. */
export function parseInteger(text: string): number {
  const value = /^-?\d{1,15}$/.test(text) ? Number(text) : Number.NaN;
  if (Number.isNaN(value)) throw invalid(text, "a whole number");
  return value;
}

/**
 * Parses a CPU or node list such as "0-3,8,10-14:2". Returns a sorted list without duplicates, empty for "". Throws
 * `invalid`. Format: the kernel's "cpulist", Documentation/admin-guide/cputopology.rst.
 */
export function parseCpuList(text: string): number[] {
  const found = new Set<number>();
  const trimmed = text.trim();
  if (trimmed === "") return [];
  for (const part of trimmed.split(",")) {
    const match = /^(\d{1,6})(?:-(\d{1,6})(?::(\d{1,6}))?)?$/.exec(part);
    const first = Number(match?.[1]);
    const last = Number(match?.[2] ?? match?.[1]);
    const step = Number(match?.[3] ?? 1);
    if (!match || last < first || last > HIGHEST_CPU || step < 1)
      throw invalid(text, 'a list such as "0-3,8"');
    for (let cpu = first; cpu <= last; cpu += step) found.add(cpu);
  }
  return [...found].sort((a, b) => a - b);
}

/**
 * Returns the bytes of a line such as "MemTotal: 16384 kB" or "Node 0 MemTotal: …". Undefined if the line is absent.
 * Avoids regular expressions over the whole text, because it runs several times a second.
 * @param key such as "Inactive(file)"
 */
export function memoryLine(text: string, key: string): number | undefined {
  const name = `${key}:`;
  for (let at = text.indexOf(name); at >= 0; at = text.indexOf(name, at + 1)) {
    const start = text.lastIndexOf("\n", at) + 1;
    if (start !== at && !/^Node \d+ $/.test(text.slice(start, at))) continue;
    const end = text.indexOf("\n", at);
    const value = text.slice(at + name.length, end < 0 ? undefined : end).trim();
    return /^\d{1,13} kB$/.test(value) ? Number(value.slice(0, -3)) * 1024 : undefined;
  }
  return undefined;
}

function invalid(text: string, wanted: string): NodekeeperError {
  return new NodekeeperError("invalid", `${JSON.stringify(text.slice(0, 60))} is not ${wanted}`);
}
