import { memoryLine } from "./parse.ts";
import type { Probe } from "./probe.ts";

/** Memory of the host, in bytes. Values that old kernels do not report are undefined. */
export interface MemoryState {
  totalBytes: number;
  freeBytes: number;
  /** MemAvailable: the kernel's estimate of the memory that can be allocated without swapping. */
  availableBytes: number | undefined;
  /** Inactive page cache. The kubelet computes a node's working set as total - free - inactive file. */
  inactiveFileBytes: number | undefined;
  /**
   * Distance between the kernel's watermarks, as a fraction of memory in units of 1/10,000: vm.watermark_scale_factor.
   */
  watermarkScaleFactor: number | undefined;
}

/** Reads MemTotal from /proc/meminfo, in bytes. Undefined if it is not reported. */
export async function readMemoryTotal(probe: Probe): Promise<number | undefined> {
  const text = probe.kernelText("/proc/meminfo");
  return text === undefined ? undefined : memoryLine(text, "MemTotal");
}

/** Reads vm.watermark_scale_factor. Undefined if the kernel does not report it. */
export function watermarkScaleFactorOf(probe: Probe): number | undefined {
  return probe.kernelInteger("/proc/sys/vm/watermark_scale_factor");
}

/** Reads /proc/meminfo. Undefined if MemTotal or MemFree is missing. */
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

// The first mapping takes about 700 bytes; reading the whole file walks all mappings.
const FIRST_MAPPING_CAP = 2 * 1024;

/**
 * Memory page size in bytes: 4096, or 16384 or 65536 on some arm64 kernels. No kernel file reports it directly, so it
 * is read from this process's first mapping in smaps.
 */
export class PageSize {
  #bytes: number | undefined;

  /** Undefined before the first successful read. */
  get known(): number | undefined {
    return this.#bytes;
  }

  /** Returns the page size and caches it, because it cannot change. Undefined if it cannot be read. */
  async read(probe: Probe): Promise<number | undefined> {
    this.#bytes ??= await readPageSize(probe);
    return this.#bytes;
  }
}

async function readPageSize(probe: Probe): Promise<number | undefined> {
  const text = await probe.text("/proc/self/smaps", { cap: FIRST_MAPPING_CAP, truncate: true });
  const size = text === undefined ? undefined : memoryLine(text, "KernelPageSize");
  return size !== undefined && size >= 4096 && Number.isInteger(Math.log2(size)) ? size : undefined;
}
