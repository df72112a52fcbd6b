import type { PageSize } from "./page-size.ts";
import type { Probe } from "./probe.ts";

/** The memory of one NUMA node as the kernel's page allocator sees it, bytes. */
export interface NodeMemory {
  id: number;
  /** Pages that the zone manages. */
  totalBytes: number;
  freeBytes: number;
  /** Watermarks: below `low` the kernel reclaims in the background, below `min` an allocation waits for it. */
  minBytes: number;
  lowBytes: number;
  /** Page cache that was not used lately: the first to be given back. */
  inactiveFileBytes: number;
}

/** One zone of /proc/zoneinfo, in pages; what it does not report is undefined. */
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
// Each zone has some 2 KB plus 150 bytes for each CPU.
export const ZONE_INFO_CAP = 8 * 1024 * 1024;

/** The memory of each NUMA node, by number; undefined where the kernel does not report it. */
export async function readNodeMemory(probe: Probe, page: PageSize): Promise<NodeMemory[] | undefined> {
  const text = probe.longKernelText(ZONE_INFO, ZONE_INFO_CAP);
  const pageSize = await page.read(probe);
  if (text === undefined || pageSize === undefined) return undefined;
  const nodes = nodeMemoryOf(parseZoneInfo(text), pageSize);
  return nodes.length === 0 ? undefined : nodes;
}

/** Reads the text of /proc/zoneinfo. Lines that are not of interest, or make no sense, are passed over. */
export function parseZoneInfo(text: string): Zone[] {
  const zones: Zone[] = [];
  for (const block of text.split(/^Node /m).slice(1)) {
    const header = /^(\d{1,5}), zone +(\w+)/.exec(block);
    if (!header) continue;
    // Behind "pagesets" are five lines for each CPU, with a "low" and a "min" of their own.
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

// The number on the first line such as "  pages free 42", "        min 42" or "      nr_zone_inactive_file 42". Without
// a text for each line: a zone has some sixty, and is read every second.
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
 * The zone that decides for a node: Normal, where nearly all of a server's memory is and which the kernel itself needs;
 * the largest where there is no Normal zone, as on small machines. A node of which a figure is missing is left out.
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
