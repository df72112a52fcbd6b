import { memoryLine } from "./parse.ts";
import type { Probe } from "./probe.ts";

/** MemTotal of /proc/meminfo, bytes; undefined where it is not told. */
export async function readMemoryTotal(probe: Probe): Promise<number | undefined> {
  const text = await probe.text("/proc/meminfo");
  return text === undefined ? undefined : memoryLine(text, "MemTotal");
}
