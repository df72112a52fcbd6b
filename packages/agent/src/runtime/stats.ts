import type {
  ContainerStats as CriContainerStats,
  CpuUsage as CriCpuUsage,
  FilesystemUsage as CriFilesystemUsage,
  MemoryUsage as CriMemoryUsage,
  PodSandboxStats as CriPodSandboxStats,
  ProcessUsage as CriProcessUsage,
} from "@nodekeeper/core/gen/runtime/v1/api.ts";
import type { PodIdentity } from "./owners.ts";

// What a runtime does not tell is undefined, never 0. Each reading has the time at which the runtime took it,
// nanoseconds since the epoch: they may differ within one answer. A reading without a time was never taken: containerd
// sends zeros for layers that it has not measured yet.

export interface CpuUsage {
  takenAt: bigint;
  /** Core nanoseconds since the container's start. */
  usageCoreNanoseconds: bigint | undefined;
  /** Billionths of a core, over a window of the runtime's choice; containerd's first reading of a container says 0. */
  usageNanoCores: bigint | undefined;
}

/** Bytes. */
export interface MemoryUsage {
  takenAt: bigint;
  workingSetBytes: bigint | undefined;
  /** Up to the limit; 0 on containerd also where there is no limit. */
  availableBytes: bigint | undefined;
  usageBytes: bigint | undefined;
  rssBytes: bigint | undefined;
}

/** What a container has written into its own layer. */
export interface WritableLayerUsage {
  takenAt: bigint;
  usedBytes: bigint | undefined;
  inodesUsed: bigint | undefined;
}

export interface ProcessUsage {
  takenAt: bigint;
  count: bigint | undefined;
}

export interface ContainerStats {
  id: string;
  /** The container's name in its pod. */
  name: string;
  cpu: CpuUsage | undefined;
  memory: MemoryUsage | undefined;
  writableLayer: WritableLayerUsage | undefined;
}

export interface PodStats extends PodIdentity {
  sandboxId: string;
  cpu: CpuUsage | undefined;
  memory: MemoryUsage | undefined;
  processes: ProcessUsage | undefined;
  containers: readonly ContainerStats[];
}

/** Undefined where the runtime does not say whose they are. */
export function containerStats(stats: CriContainerStats): ContainerStats | undefined {
  const { attributes, cpu, memory, writableLayer } = stats;
  if (!attributes?.id) return undefined;
  return {
    id: attributes.id,
    name: attributes.metadata?.name ?? "",
    cpu: taken(cpu, cpuUsage),
    memory: taken(memory, memoryUsage),
    writableLayer: taken(writableLayer, writableLayerUsage),
  };
}

/** Undefined where the runtime does not say whose they are. */
export function podStats({ attributes, linux }: CriPodSandboxStats): PodStats | undefined {
  if (!attributes?.id || !attributes.metadata?.uid) return undefined;
  const { uid, name, namespace } = attributes.metadata;
  return {
    uid,
    name,
    namespace,
    sandboxId: attributes.id,
    cpu: taken(linux?.cpu, cpuUsage),
    memory: taken(linux?.memory, memoryUsage),
    processes: taken(linux?.process, processUsage),
    containers: (linux?.containers ?? []).flatMap((container) => containerStats(container) ?? []),
  };
}

function taken<Reading extends { timestamp: bigint }, Usage>(
  reading: Reading | undefined,
  usageOf: (reading: Reading) => Usage,
): Usage | undefined {
  return reading && reading.timestamp !== 0n ? usageOf(reading) : undefined;
}

function cpuUsage({ timestamp, usageCoreNanoSeconds, usageNanoCores }: CriCpuUsage): CpuUsage {
  return {
    takenAt: timestamp,
    usageCoreNanoseconds: usageCoreNanoSeconds?.value,
    usageNanoCores: usageNanoCores?.value,
  };
}

function memoryUsage(memory: CriMemoryUsage): MemoryUsage {
  return {
    takenAt: memory.timestamp,
    workingSetBytes: memory.workingSetBytes?.value,
    availableBytes: memory.availableBytes?.value,
    usageBytes: memory.usageBytes?.value,
    rssBytes: memory.rssBytes?.value,
  };
}

function writableLayerUsage({ timestamp, usedBytes, inodesUsed }: CriFilesystemUsage): WritableLayerUsage {
  return { takenAt: timestamp, usedBytes: usedBytes?.value, inodesUsed: inodesUsed?.value };
}

function processUsage({ timestamp, processCount }: CriProcessUsage): ProcessUsage {
  return { takenAt: timestamp, count: processCount?.value };
}
