/** How old a reading may be that a policy goes by, milliseconds. */
export const OLDEST_READING_MS = 30_000;

/** A part of the node's state and when it was read, or why it is not known. */
export type Part<T> =
  | {
      value: T;
      /** Monotonic milliseconds. */
      at: number;
    }
  | { missing: string };

/** Bytes; undefined where the machine does not report it. */
export interface MemoryPart {
  total?: number | undefined;
  /** What could be given out without swapping, as the kernel estimates it. */
  available?: number | undefined;
  free?: number | undefined;
  /** In use, without page cache that was not used lately: what the kubelet counts. */
  workingSet?: number | undefined;
}

/** Shares of time in which tasks stood still, percent (0 to 100). */
export interface StallPart {
  avg10?: number | undefined;
  avg60?: number | undefined;
  avg300?: number | undefined;
}

export interface PressurePart {
  some?: StallPart | undefined;
  full?: StallPart | undefined;
}

export interface CpuPart {
  /** 0 to 1, of all CPUs. */
  usage?: number | undefined;
  /** How many CPUs there are. */
  cores?: number | undefined;
}

/** Bytes and inodes; a file system that makes inodes as it needs them reports none. */
export interface FilesystemPart {
  capacity?: number | undefined;
  available?: number | undefined;
  inodes?: number | undefined;
  inodesFree?: number | undefined;
}

/** The file system of writable layers. */
export interface ContainerFilesystemPart extends FilesystemPart {
  /** 1 where it is not the one of images, else 0. */
  isSeparate?: number | undefined;
}

/** Memory of all pods, bytes. */
export interface AllocatableMemoryPart {
  /** What the node lets all pods together use: the limit of the kubelet's cgroup for them. */
  capacity?: number | undefined;
  workingSet?: number | undefined;
}

/** Process numbers. */
export interface PidsPart {
  max?: number | undefined;
  current?: number | undefined;
}

/** What the variable `node` is made of. */
export interface NodeSnapshot {
  memory: Part<MemoryPart>;
  psi: { memory: Part<PressurePart>; cpu: Part<PressurePart>; io: Part<PressurePart> };
  cpu: Part<CpuPart>;
  allocatableMemory: Part<AllocatableMemoryPart>;
  nodefs: Part<FilesystemPart>;
  imagefs: Part<FilesystemPart>;
  containerfs: Part<ContainerFilesystemPart>;
  pids: Part<PidsPart>;
}

/** Where policies get their readings. */
export interface NodeReadings {
  /**
   * Throws nothing but the signal's reason: what can't be read is `missing`. @param reads the fields that are wanted,
   * "node.memory.total"; parts without any are not read
   */
  read(reads: readonly string[], signal: AbortSignal): Promise<NodeSnapshot>;
}

/** The variable `node`, and what is wrong with the fields that are to be read. */
export interface NodeVariable {
  node: Record<string, unknown>;
  /** "node.psi.memory.some.avg10: the kernel measures no pressure"; empty where all are known and fresh. */
  problems: string[];
}

/**
 * The snapshot as expressions see it. @param reads the fields they read: "node.memory.total" @param maxAgeMs how old
 * a part may be
 */
export function nodeVariable(
  snapshot: NodeSnapshot,
  reads: readonly string[],
  now: number,
  maxAgeMs: number,
): NodeVariable {
  const problems: string[] = [];
  for (const path of reads) {
    const problem = problemOf(snapshot, path.split(".").slice(1), now, maxAgeMs);
    if (problem !== undefined) problems.push(`${path}: ${problem}`);
  }
  const { psi, ...parts } = snapshot;
  return { node: { ...valuesOf(parts), psi: valuesOf(psi) }, problems };
}

function problemOf(
  { psi, ...parts }: NodeSnapshot,
  [name, ...fields]: string[],
  now: number,
  maxAgeMs: number,
): string | undefined {
  const group: Readonly<Record<string, Part<unknown>>> = name === "psi" ? { ...psi } : { ...parts };
  const part = group[(name === "psi" ? fields.shift() : name) ?? ""];
  if (!part) return "is not read";
  if ("missing" in part) return part.missing;
  const ageMs = now - part.at;
  if (ageMs > maxAgeMs) return `read ${ageMs} ms ago, more than ${maxAgeMs} ms`;
  let value: unknown = part.value;
  for (const field of fields) value = isObject(value) ? value[field] : undefined;
  return typeof value === "number" && Number.isFinite(value) ? undefined : "the machine does not report it";
}

function valuesOf(parts: Readonly<Record<string, Part<unknown>>>): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(parts).map(([name, part]) => [name, "value" in part ? part.value : {}]),
  );
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null;
}
