import type { HeapCodeStatistics, HeapSpaceInfo } from "node:v8";

/** What a process reports about its own heap. */
export interface HeapReport {
  spaces: HeapSpaceInfo[];
  code: HeapCodeStatistics;
  memory: NodeJS.MemoryUsage;
}

/**
 * Memory in MiB by row. RSS is the sum of the executable, libraries, glibc's heap and other mappings. Other mappings
 * are V8's heap, stacks and the rest.
 */
export type Account = Readonly<Record<string, number>>;

const MIB = 2 ** 20;

/** @param smaps content of /proc/PID/smaps, see proc(5) */
export function accountOf(smaps: string, { spaces, code, memory }: HeapReport): Account {
  const { node, libraries, glibcHeap, other, stacks, anonymous } = mappings(smaps);
  const space = (...names: string[]) =>
    spaces
      .filter(({ space_name: name }) => names.includes(name))
      .reduce((sum, each) => sum + each.physical_space_size, 0) / MIB;
  const heap = spaces.reduce((sum, each) => sum + each.physical_space_size, 0) / MIB;
  return {
    RSS: node + libraries + glibcHeap + other,
    "of which anonymous": anonymous,
    "pages of Node's executable": node,
    "pages of libraries": libraries,
    "heap of glibc": glibcHeap,
    "other anonymous mappings": other,
    "V8's heap": heap,
    "V8: old objects": space("old_space", "large_object_space"),
    "V8: young objects": space("new_space", "new_large_object_space"),
    "V8: machine code": space("code_space", "code_large_object_space"),
    "V8: bytecode and its metadata": space("trusted_space", "trusted_large_object_space"),
    "stacks of threads": stacks,
    "mapped buffers and the rest": other - heap - stacks,
    "texts of scripts": code.external_script_source_size / MIB,
    "array buffers": memory.arrayBuffers / MIB,
  };
}

function mappings(smaps: string) {
  const sums = { node: 0, libraries: 0, glibcHeap: 0, other: 0, stacks: 0, anonymous: 0 };
  let mapping: Mapping | undefined;
  let isOfStack = false;
  for (const line of smaps.split("\n")) {
    const next = mappingOf(line);
    if (next) {
      isOfStack = isStack(next, mapping);
      mapping = next;
    }
    const [, field, kilobytes] = /^(Rss|Anonymous): +(\d+) kB$/.exec(line) ?? [];
    const megabytes = Number(kilobytes) / 1024;
    if (field === "Rss") sums[kindOf(mapping!.name)] += megabytes;
    if (field === "Rss" && isOfStack) sums.stacks += Math.min(megabytes, LARGEST_STACK_MB);
    if (field === "Anonymous") sums.anonymous += megabytes;
  }
  return sums;
}

interface Mapping {
  from: number;
  to: number;
  access: string;
  name: string;
}

function mappingOf(line: string): Mapping | undefined {
  const [, from, to, access, name] = /^([0-9a-f]+)-([0-9a-f]+) (\S+) \S+ \S+ \S+ *(.*)$/.exec(line) ?? [];
  if (from === undefined) return undefined;
  return { from: Number.parseInt(from, 16), to: Number.parseInt(to!, 16), access: access!, name: name! };
}

const GUARD_BYTES = 4_096;
const LARGEST_STACK_MB = 8;

// The main thread's stack is named. glibc maps each other stack directly above a guard page. The kernel may merge a
// mapping with the one above it.
function isStack({ name, access, from }: Mapping, before: Mapping | undefined): boolean {
  if (name === "[stack]") return true;
  const isGuarded =
    before?.to === from && before.access === "---p" && before.to - before.from === GUARD_BYTES;
  return name === "" && access === "rw-p" && isGuarded;
}

function kindOf(name: string): "node" | "libraries" | "glibcHeap" | "other" {
  if (name === "[heap]") return "glibcHeap";
  if (!name.startsWith("/")) return "other";
  return name.endsWith("/node") ? "node" : "libraries";
}
