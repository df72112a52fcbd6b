import { memoryLine } from "./parse.ts";
import type { Probe } from "./probe.ts";

/** The machine's memory, bytes. What an old kernel does not report is undefined. */
export interface MemoryState {
  totalBytes: number;
  freeBytes: number;
  /** What could be given out without swapping, as the kernel estimates it. */
  availableBytes: number | undefined;
  /** Page cache that was not used lately. The kubelet's working set of a node is total - free - this. */
  inactiveFileBytes: number | undefined;
  /** Distance between the kernel's watermarks, in ten-thousandths of the memory: vm.watermark_scale_factor. */
  watermarkScaleFactor: number | undefined;
}

/** MemTotal of /proc/meminfo, bytes; undefined where it is not reported. */
export async function readMemoryTotal(probe: Probe): Promise<number | undefined> {
  const text = probe.kernelText("/proc/meminfo");
  return text === undefined ? undefined : memoryLine(text, "MemTotal");
}

/** vm.watermark_scale_factor; undefined where the kernel does not report it. */
export function watermarkScaleFactorOf(probe: Probe): number | undefined {
  return probe.kernelInteger("/proc/sys/vm/watermark_scale_factor");
}

/** /proc/meminfo with the watermark scale; undefined where total or free are missing. */
export function memoryState(
  probe: Probe,
  watermarkScaleFactor = watermarkScaleFactorOf(probe),
): MemoryState | undefined {
  const text = probe.kernelText("/proc/meminfo");
  if (text === undefined) return undefined;
  const totalBytes = memoryLine(text, "MemTotal");
  const freeBytes = memoryLine(text, "MemFree");
  if (totalBytes === undefined || freeBytes === undefined) return undefined;
  return {
    totalBytes,
    freeBytes,
    availableBytes: memoryLine(text, "MemAvailable"),
    inactiveFileBytes: memoryLine(text, "Inactive(file)"),
    watermarkScaleFactor,
  };
}
