import { memoryLine } from "./parse.ts";
import type { Probe } from "./probe.ts";

// The first mapping of a process is some 700 bytes of this file; the whole of it would cost a walk over all mappings.
const FIRST_MAPPING_CAP = 2 * 1024;

/**
 * The size of a page of memory, bytes: 4096, on some arm64 kernels 16384 or 65536. The kernel has no file of
 * its own for it; this process's first mapping in smaps has it.
 */
export class PageSize {
  #bytes: number | undefined;

  /** Undefined before it was read. */
  get known(): number | undefined {
    return this.#bytes;
  }

  /** Looked up until it is known, for it can't change; undefined where it can't be read. */
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
