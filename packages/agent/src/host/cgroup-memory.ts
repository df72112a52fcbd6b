import { wholeNumber } from "./parse.ts";

/**
 * Memory usage of a cgroup and its descendants, in bytes. Values that the kernel does not report are undefined, never
 * 0.
 */
export interface CgroupMemory {
  usageBytes: number | undefined;
  /** Anonymous memory, which cannot be reclaimed without swap. */
  rssBytes: number | undefined;
  /** Working set as the kubelet computes it: usage minus inactive page cache. */
  workingSetBytes: number | undefined;
  /** Anonymous memory and page cache by NUMA node. Undefined if not read, as on machines with one node. */
  nodeBytes: ReadonlyMap<number, number> | undefined;
}

/** Names of the memory files and their fields in one cgroup version. */
export interface MemoryNames {
  usage: string;
  limit: string;
  /** Field of memory.stat, including descendants. */
  rss: string;
  inactiveFile: string;
  /** Lines of memory.numa_stat that are summed. */
  nodeLines: readonly string[];
  /** Whether memory.numa_stat counts pages rather than bytes. */
  nodePages: boolean;
}

export const memoryV2: MemoryNames = {
  usage: "memory.current",
  limit: "memory.max",
  rss: "anon",
  inactiveFile: "inactive_file",
  // Unlike katalyst, "unevictable" is not added: "anon" and "file" already include locked memory.
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

/** Content of a cgroup's memory files; undefined if a file could not be read. */
export interface MemoryTexts {
  usage: string | undefined;
  stat: string | undefined;
  nodes: string | undefined;
}

/** Computes a cgroup's memory usage. @param pageSize in bytes; needed for `nodeBytes` only if the file counts pages */
export function cgroupMemoryOf(
  texts: MemoryTexts,
  names: MemoryNames,
  pageSize: number | undefined,
): CgroupMemory {
  const usageBytes = wholeNumber(texts.usage);
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

/** Returns the value of a key in a flat-keyed file; undefined if the key is absent. */
export function statValue(text: string, key: string): number | undefined {
  const start = text.startsWith(`${key} `) ? 0 : text.indexOf(`\n${key} `) + 1;
  if (start === 0 && !text.startsWith(`${key} `)) return undefined;
  const end = text.indexOf("\n", start);
  return wholeNumber(text.slice(start + key.length + 1, end < 0 ? undefined : end));
}

/**
 * Sums lines such as "anon N0=4096 N1=0" (v2) or "hierarchical_total=3 N0=1 N1=2" (v1) by node. Returns undefined if a
 * line is missing or malformed, because a partial sum would be wrong.
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
