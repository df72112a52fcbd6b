import type { HeapCodeStatistics, HeapSpaceInfo } from "node:v8";

/** What a process reports about its own heap. */
export interface HeapReport {
  spaces: HeapSpaceInfo[];
  code: HeapCodeStatistics;
  memory: NodeJS.MemoryUsage;
}

/** Megabytes by row. The first rows add up to the resident memory; those of V8 are parts of the anonymous ones. */
export type Account = Readonly<Record<string, number>>;

const MIB = 2 ** 20;

/** @param smaps content of /proc/PID/smaps, see proc(5) */
export function accountOf(smaps: string, { spaces, code, memory }: HeapReport): Account {
  const { node, libraries, glibcHeap, other, anonymous } = mappings(smaps);
  const space = (...names: string[]) =>
    spaces
      .filter(({ space_name: name }) => names.includes(name))
      .reduce((sum, each) => sum + each.physical_space_size, 0) / MIB;
  return {
    RSS: node + libraries + glibcHeap + other,
    "of which anonymous": anonymous,
    "pages of Node's executable": node,
    "pages of libraries": libraries,
    "heap of glibc": glibcHeap,
    "other anonymous mappings": other,
    "V8's heap": spaces.reduce((sum, each) => sum + each.physical_space_size, 0) / MIB,
    "V8: old objects": space("old_space", "large_object_space"),
    "V8: young objects": space("new_space", "new_large_object_space"),
    "V8: machine code": space("code_space", "code_large_object_space"),
    "V8: bytecode and its metadata": space("trusted_space", "trusted_large_object_space"),
    "texts of scripts": code.external_script_source_size / MIB,
    "array buffers": memory.arrayBuffers / MIB,
  };
}

function mappings(smaps: string) {
  const sums = { node: 0, libraries: 0, glibcHeap: 0, other: 0, anonymous: 0 };
  let name = "";
  for (const line of smaps.split("\n")) {
    const header = /^[0-9a-f]+-[0-9a-f]+ \S+ \S+ \S+ \S+ *(.*)$/.exec(line);
    if (header) name = header[1]!;
    const [, field, kilobytes] = /^(Rss|Anonymous): +(\d+) kB$/.exec(line) ?? [];
    if (field === "Rss") sums[kindOf(name)] += Number(kilobytes) / 1024;
    if (field === "Anonymous") sums.anonymous += Number(kilobytes) / 1024;
  }
  return sums;
}

function kindOf(name: string): "node" | "libraries" | "glibcHeap" | "other" {
  if (name === "[heap]") return "glibcHeap";
  if (!name.startsWith("/")) return "other";
  return name.endsWith("/node") ? "node" : "libraries";
}
