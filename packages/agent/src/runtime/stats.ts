import type {
  ContainerStats as CriContainerStats,
  CpuUsage as CriCpuUsage,
  FilesystemUsage as CriFilesystemUsage,
  MemoryUsage as CriMemoryUsage,
  PodSandboxStats as CriPodSandboxStats,
  ProcessUsage as CriProcessUsage,
} from "@nodekeeper/core/gen/runtime/v1/api.ts";
import type { PodIdentity } from "./owners.ts";

// Values that a runtime does not report are undefined, not 0. Each reading has the time at which the runtime took it, in
// nanoseconds since the epoch; times may differ within one response. A reading without a time is ignored: containerd
// sends zeros for layers that it has not measured yet.

export interface CpuUsage {
  takenAt: bigint;
  /** CPU time since the container's start, core nanoseconds. */
  usageCoreNanoseconds: bigint | undefined;
  /** Usage in nanocores over a window chosen by the runtime; 0 in containerd's first reading of a container. */
  usageNanoCores: bigint | undefined;
}

/** Memory usage in bytes. */
export interface MemoryUsage {
  takenAt: bigint;
  workingSetBytes: bigint | undefined;
  /** Bytes available up to the limit; containerd also reports 0 if there is no limit. */
  availableBytes: bigint | undefined;
  usageBytes: bigint | undefined;
  rssBytes: bigint | undefined;
}

/** Usage of a container's writable layer. */
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
  /** Name of the container in its pod. */
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

/** Converts stats; undefined if they have no attributes. */
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

/** Converts stats; undefined if they have no attributes. */
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
