/** Maximum age in milliseconds of a reading that a policy is evaluated with. */
export const OLDEST_READING_MS = 30_000;

/** A part of the node's state and when it was read, or why it is unknown. */
export type Part<T> =
  | {
      value: T;
      /** Monotonic milliseconds. */
      at: number;
    }
  | { missing: string };

/** Memory in bytes. Undefined if the machine does not report it. */
export interface MemoryPart {
  total?: number | undefined;
  /** Available without swapping, as estimated by the kernel. */
  available?: number | undefined;
  free?: number | undefined;
  /** Memory in use without inactive page cache, as the kubelet computes it. */
  workingSet?: number | undefined;
}

/** Percentages of time in which tasks were stalled (0 to 100). */
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
  /** Share of all CPUs in use, 0 to 1. */
  usage?: number | undefined;
  /** Number of CPUs. */
  cores?: number | undefined;
}

/** Bytes and inodes. A filesystem that allocates inodes dynamically reports no inodes. */
export interface FilesystemPart {
  capacity?: number | undefined;
  available?: number | undefined;
  inodes?: number | undefined;
  inodesFree?: number | undefined;
}

/** The filesystem of writable layers. */
export interface ContainerFilesystemPart extends FilesystemPart {
  /** 1 if images are on another filesystem, otherwise 0. */
  isSeparate?: number | undefined;
}

/** Memory of all pods in bytes. */
export interface AllocatableMemoryPart {
  /** The memory limit of the kubelet's cgroup for all pods. */
  capacity?: number | undefined;
  workingSet?: number | undefined;
}

/** Maximum and current number of PIDs. */
export interface PidsPart {
  max?: number | undefined;
  current?: number | undefined;
}

/** The parts of the variable `node`. */
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

/** Readings of the node for policies. */
export interface NodeReadings {
  /**
   * Reads the node. Data that cannot be read is `missing`; throws only the signal's reason.
   * @param reads the fields to read, such as "node.memory.total"; parts without any of them are not read
   */
  read(reads: readonly string[], signal: AbortSignal): Promise<NodeSnapshot>;
}

/** The variable `node`, and the problems of the fields to read. */
export interface NodeVariable {
  node: Record<string, unknown>;
  /**
   * "node.psi.memory.some.avg10: the kernel measures no pressure". Empty if all fields are known and fresh.
   */
  problems: string[];
}

/**
 * Returns the snapshot as the variable of expressions.
 * @param reads the fields that the expressions read, such as "node.memory.total"
 * @param maxAgeMs maximum age of a part
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
