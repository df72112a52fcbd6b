import {
  type CpuUse,
  type FilesystemState,
  type HostReadings,
  type MemoryState,
  type PidState,
  type Pressure,
  type Reading,
  readingProblem,
} from "../../host/index.ts";
import { messageOf } from "../../lib/index.ts";
import type { PodMemories, PodMemory } from "../eviction/pod-memory.ts";
import type {
  CpuPart,
  FilesystemPart,
  MemoryPart,
  NodeReadings,
  NodeSnapshot,
  Part,
  PidsPart,
  PressurePart,
} from "./node-snapshot.ts";
import type { PodUsage, PodUsageReader } from "./pod-variable.ts";

export interface HostNodeReadingsOptions {
  readings: Pick<HostReadings, "memory" | "cpu" | "pids" | "pressure" | "filesystem">;
  /** Where the kubelet keeps what is not images: "/var/lib/kubelet". */
  nodefsPath: string;
  /** Where the runtime keeps images and writable layers. Rejects with why that is not known: it is missing then. */
  imagefsPath: (signal: AbortSignal) => Promise<string>;
}

/** The machine's readings as policies see them; the policies of a round share them. */
export class HostNodeReadings implements NodeReadings {
  readonly #options: HostNodeReadingsOptions;

  constructor(options: HostNodeReadingsOptions) {
    this.#options = options;
  }

  async read(signal: AbortSignal): Promise<NodeSnapshot> {
    const { readings, nodefsPath, imagefsPath } = this.#options;
    const pressure = async (resource: "memory" | "cpu" | "io") =>
      partOf(await readings.pressure(resource, signal), pressurePart);
    const filesystem = async (path: string) =>
      partOf(await readings.filesystem(path, signal), filesystemPart);
    const [memory, cpu, pids, memoryPressure, cpuPressure, ioPressure, nodefs, imagefs] = await Promise.all([
      readings.memory(signal),
      readings.cpu(signal),
      readings.pids(signal),
      pressure("memory"),
      pressure("cpu"),
      pressure("io"),
      filesystem(nodefsPath),
      imagefsPath(signal).then(filesystem, (error): Part<FilesystemPart> => {
        signal.throwIfAborted();
        return { missing: messageOf(error) };
      }),
    ]);
    return {
      memory: partOf(memory, memoryPart),
      psi: { memory: memoryPressure, cpu: cpuPressure, io: ioPressure },
      cpu: partOf(cpu, cpuPart),
      nodefs,
      imagefs,
      pids: partOf(pids, pidsPart),
    };
  }
}

/** What pods use by the readings that other plugins use as well. Nobody reads the CPUs of pods yet. */
export function podUsageOf(memories: Pick<PodMemories, "of">): PodUsageReader {
  return async (pods, signal) =>
    partOf(
      await memories.of(pods, signal),
      (found) => new Map([...found].map(([uid, memory]) => [uid, usageOf(memory)])),
    );
}

function usageOf({ usageBytes, workingSetBytes, rssBytes }: PodMemory): PodUsage {
  return { memory: usageBytes, workingSet: workingSetBytes, rss: rssBytes };
}

function partOf<T, U>(reading: Reading<T>, turn: (value: T) => U): Part<U> {
  if (reading.state === "read") return { value: turn(reading.value), at: reading.at };
  return { missing: readingProblem(reading) ?? "is not read" };
}

// As the kubelet counts: what is in use, less the page cache that was not used lately.
function memoryPart(state: MemoryState): MemoryPart {
  const { totalBytes: total, freeBytes: free, availableBytes: available, inactiveFileBytes } = state;
  if (inactiveFileBytes === undefined) return { total, free, available };
  return { total, free, available, workingSet: Math.max(total - free - inactiveFileBytes, 0) };
}

function pressurePart({ some, full }: Pressure): PressurePart {
  return { some, full };
}

function cpuPart({ share, cpus }: CpuUse): CpuPart {
  return { usage: share, cores: cpus };
}

// A file system that makes inodes as it needs them says 0 of them.
function filesystemPart(state: FilesystemState): FilesystemPart {
  const space = { capacity: state.sizeBytes, available: state.availableBytes };
  return state.inodes > 0 ? { ...space, inodes: state.inodes, inodesFree: state.inodesFree } : space;
}

function pidsPart({ max, current }: PidState): PidsPart {
  return { max, current };
}
