/** Memory of a cgroup and all below it, bytes. What the kernel does not report is undefined, never 0. */
export interface CgroupMemory {
  usageBytes: number | undefined;
  /** Anonymous memory: what can't be dropped without swap. */
  rssBytes: number | undefined;
  /** Usage without the page cache that was not used lately, as the kubelet counts it. */
  workingSetBytes: number | undefined;
  /** Anonymous memory and page cache by NUMA node; undefined also on a machine of one node. */
  nodeBytes: ReadonlyMap<number, number> | undefined;
}

/** What one version of cgroups calls the files and fields of memory. */
export interface MemoryNames {
  usage: string;
  limit: string;
  /** In memory.stat: of the cgroup with all below it. */
  rss: string;
  inactiveFile: string;
  /** The lines of memory.numa_stat that are added up. */
  nodeLines: readonly string[];
  /** Whether memory.numa_stat counts pages rather than bytes. */
  nodePages: boolean;
}

export const memoryV2: MemoryNames = {
  usage: "memory.current",
  limit: "memory.max",
  rss: "anon",
  inactiveFile: "inactive_file",
  // Not "unevictable", as katalyst does: locked memory is in "anon" or "file" already.
  nodeLines: ["anon", "file"],
  nodePages: false,
};

export const memoryV1: MemoryNames = {
  usage: "memory.usage_in_bytes",
  limit: "memory.limit_in_bytes",
  rss: "total_rss",
  inactiveFile: "total_inactive_file",
  nodeLines: ["hierarchical_total"],
  nodePages: true,
};

/** The texts of a cgroup's memory files, each where it could be read. */
export interface MemoryTexts {
  usage: string | undefined;
  stat: string | undefined;
  nodes: string | undefined;
}

/** Reads a cgroup's memory. @param pageSize bytes; without it, counts of pages are undefined */
export function cgroupMemoryOf(
  texts: MemoryTexts,
  names: MemoryNames,
  pageSize: number | undefined,
): CgroupMemory {
  const usageBytes = wholeNumber(texts.usage?.trim());
  const stat = texts.stat ?? "";
  const inactiveFile = statValue(stat, names.inactiveFile);
  const unit = names.nodePages ? pageSize : 1;
  return {
    usageBytes,
    rssBytes: statValue(stat, names.rss),
    workingSetBytes:
      usageBytes === undefined || inactiveFile === undefined
        ? undefined
        : Math.max(0, usageBytes - inactiveFile),
    nodeBytes:
      texts.nodes === undefined || unit === undefined
        ? undefined
        : nodeBytesOf(texts.nodes, names.nodeLines, unit),
  };
}

/** The number on the line "key number" of a flat keyed file, or undefined where there is none. */
export function statValue(text: string, key: string): number | undefined {
  const start = text.startsWith(`${key} `) ? 0 : text.indexOf(`\n${key} `) + 1;
  if (start === 0 && !text.startsWith(`${key} `)) return undefined;
  const end = text.indexOf("\n", start);
  return wholeNumber(text.slice(start + key.length + 1, end < 0 ? undefined : end));
}

/**
 * Adds up lines such as "anon N0=4096 N1=0" (v2) or "hierarchical_total=3 N0=1 N1=2" (v1), by node. Undefined where a
 * line is absent or makes no sense: part of a sum would be wrong.
 */
export function nodeBytesOf(
  text: string,
  keys: readonly string[],
  unit: number,
): ReadonlyMap<number, number> | undefined {
  const sums = new Map<number, number>();
  for (const key of keys) {
    const line = text.split("\n").find((each) => each.startsWith(`${key} `) || each.startsWith(`${key}=`));
    if (line === undefined) return undefined;
    for (const part of line.split(" ").slice(1)) {
      const match = /^N(\d{1,5})=(\d{1,18})$/.exec(part);
      if (!match) return undefined;
      const node = Number(match[1]);
      sums.set(node, (sums.get(node) ?? 0) + Number(match[2]) * unit);
    }
  }
  return sums;
}

function wholeNumber(text: string | undefined): number | undefined {
  return text !== undefined && /^\d{1,19}$/.test(text) ? Number(text) : undefined;
}
