import type { PageSize } from "./memory.ts";
import type { Probe } from "./probe.ts";

/** Memory of a NUMA node from the kernel's page allocator, in bytes. */
export interface NodeMemory {
  id: number;
  /** Managed pages of the zone. */
  totalBytes: number;
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

/**
 * Represents each node by one zone: Normal, which holds nearly all memory of a server and serves the kernel's own
 * allocations, or else the largest zone, as on small machines. Nodes with a missing value are omitted.
 */
export function nodeMemoryOf(zones: readonly Zone[], pageSize: number): NodeMemory[] {
  const deciding = new Map<number, Zone>();
  for (const zone of zones) {
    if (!zone.managed) continue;
    const known = deciding.get(zone.node);
    const isBetter =
      !known || (known.name !== "Normal" && (zone.name === "Normal" || zone.managed > known.managed!));
    if (isBetter) deciding.set(zone.node, zone);
  }
  const nodes: NodeMemory[] = [];
  for (const { node: id, managed, free, min, low, inactiveFile } of deciding.values()) {
    if (free === undefined || min === undefined || low === undefined || inactiveFile === undefined) continue;
    nodes.push({
      id,
      totalBytes: managed! * pageSize,
      freeBytes: free * pageSize,
      minBytes: min * pageSize,
      lowBytes: low * pageSize,
      inactiveFileBytes: inactiveFile * pageSize,
    });
  }
  return nodes.sort((a, b) => a.id - b.id);
}
