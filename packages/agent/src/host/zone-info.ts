import type { PageSize } from "./memory.ts";
import type { Probe } from "./probe.ts";

/** Memory of a NUMA node from the kernel's page allocator, in bytes. */
export interface NodeMemory {
  id: number;
  /** Managed pages. */
  totalBytes: number;
  /** Without the pages that zones reserve for the kernel's allocations. */
  freeBytes: number;
  /** Watermarks. Below `low`, kswapd reclaims in the background. Below `min`, allocations reclaim directly and wait. */
  minBytes: number;
  lowBytes: number;
  /** Inactive page cache, which is reclaimed first. */
  inactiveFileBytes: number;
}

/** A zone of /proc/zoneinfo, in pages. Values that are not reported are undefined. */
export interface Zone {
  node: number;
  name: string;
  managed: number | undefined;
  free: number | undefined;
  min: number | undefined;
  low: number | undefined;
  inactiveFile: number | undefined;
  /** Pages that pods cannot allocate: `vm.lowmem_reserve_ratio` reserves them for allocations that need this zone. */
  reserve: number | undefined;
}

export const ZONE_INFO = "/proc/zoneinfo";
// A zone takes about 2 KB plus 150 bytes per CPU.
export const ZONE_INFO_CAP = 8 * 1024 * 1024;

/** Reads the memory of each NUMA node, sorted by ID. Undefined if the kernel does not report it. */
export async function readNodeMemory(probe: Probe, page: PageSize): Promise<NodeMemory[] | undefined> {
  const text = probe.longKernelText(ZONE_INFO, ZONE_INFO_CAP);
  const pageSize = await page.read(probe);
  if (text === undefined || pageSize === undefined) return undefined;
  const nodes = nodeMemoryOf(parseZoneInfo(text), pageSize);
  return nodes.length === 0 ? undefined : nodes;
}

/** Parses /proc/zoneinfo. Unknown and malformed lines are ignored. */
export function parseZoneInfo(text: string): Zone[] {
  const zones: Zone[] = [];
  for (const block of text.split(/^Node /m).slice(1)) {
    const header = /^(\d{1,5}), zone +(\w+)/.exec(block);
    if (!header) continue;
    // Five lines per CPU follow "pagesets"; they also have "low" and "min" fields.
    const end = block.indexOf("\n  pagesets");
    const fields = end < 0 ? block : block.slice(0, end);
    zones.push({
      node: Number(header[1]),
      name: header[2]!,
      managed: pagesOf(fields, "managed"),
      free: pagesOf(fields, "free") ?? pagesOf(fields, "nr_free_pages"),
      min: pagesOf(fields, "min"),
      low: pagesOf(fields, "low"),
      inactiveFile: pagesOf(fields, "nr_zone_inactive_file"),
      reserve: reserveOf(fields),
    });
  }
  return zones;
}

// Parses the number on the first line such as "  pages free 42", "        min 42" or "      nr_zone_inactive_file 42".
// Does not split the text into lines: a zone has about sixty, and the file is read every second.
function pagesOf(fields: string, name: string): number | undefined {
  for (let at = fields.indexOf(name); at >= 0; at = fields.indexOf(name, at + 1)) {
    const start = at + name.length;
    if (fields[at - 1] !== " " || fields[start] !== " ") continue;
    const end = fields.indexOf("\n", start);
    const value = fields.slice(start, end < 0 ? undefined : end).trimStart();
    if (/^\d{1,15}$/.test(value)) return Number(value);
  }
  return undefined;
}

// Parses the last of the reserves by highest usable zone, as in "        protection: (0, 3019, 24090)".
function reserveOf(fields: string): number | undefined {
  const reserve = /^ +protection: \((?:\d{1,15}, )*(\d{1,15})\)$/m.exec(fields)?.[1];
  return reserve === undefined ? undefined : Number(reserve);
}

/**
 * Adds up the zones of each node: allocations use Normal first and fall back to DMA32, so Normal alone is near its low
 * watermark while the node has free memory. Nodes with a missing value are omitted.
 */
export function nodeMemoryOf(zones: readonly Zone[], pageSize: number): NodeMemory[] {
  const populated = zones.filter(({ name, managed }) => managed && name !== "Device");
  const nodes = [...Map.groupBy(populated, ({ node }) => node)].map(([id, zones]): NodeMemory => {
    const bytesOf = (pages: (zone: Zone) => number | undefined) =>
      zones.reduce((sum, zone) => sum + (pages(zone) ?? Number.NaN), 0) * pageSize;
    return {
      id,
      totalBytes: bytesOf(({ managed }) => managed),
      freeBytes: bytesOf(({ free, reserve = 0 }) => free && Math.max(0, free - reserve)),
      minBytes: bytesOf(({ min }) => min),
      lowBytes: bytesOf(({ low }) => low),
      inactiveFileBytes: bytesOf(({ inactiveFile }) => inactiveFile),
    };
  });
  return nodes.filter((node) => !Object.values(node).some(Number.isNaN)).sort((a, b) => a.id - b.id);
}
