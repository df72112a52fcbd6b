import type {
  ContainerStats as CriContainerStats,
  CpuUsage as CriCpuUsage,
  FilesystemUsage as CriFilesystemUsage,
  MemoryUsage as CriMemoryUsage,
  PodSandboxStats as CriPodSandboxStats,
} from "@nodekeeper/core/gen/runtime/v1/api.ts";

// Values that a runtime does not report are undefined, not 0. Values without the time at which the runtime measured
// them are ignored: containerd reports zeros for layers that it has not measured yet.

/** CPU usage. */
export interface CpuUsage {
  /** When the runtime measured it, nanoseconds since the epoch. */
  takenAt: bigint;
  /** CPU time since the pod's start, nanoseconds. */
  usageCoreNanoSeconds: bigint | undefined;
  /** Current usage in billionths of a CPU, over an interval of the runtime's choice. */
  usageNanoCores: bigint | undefined;
}

/** Memory usage in bytes. */
export interface MemoryUsage {
  /** When the runtime measured it, nanoseconds since the epoch. */
  takenAt: bigint;
  workingSetBytes: bigint | undefined;
  usageBytes: bigint | undefined;
  rssBytes: bigint | undefined;
}

/** Usage of a container's writable layer. */
export interface WritableLayerUsage {
  usedBytes: bigint | undefined;
  inodesUsed: bigint | undefined;
}

/** Resource usage of a pod. */
export interface PodStats {
  uid: string;
  cpu: CpuUsage | undefined;
  memory: MemoryUsage | undefined;
  containers: readonly { id: string; writableLayer: WritableLayerUsage | undefined }[];
}

/** Reads the resource usage of pods. */
export interface PodStatsReader {
  /**
   * Returns the usage of all pods whose sandbox is ready. Throws like other calls; `unsupported` on older
   * runtimes.
   */
  podStats(signal: AbortSignal): Promise<PodStats[]>;
}

/** Converts the stats of a sandbox. Returns undefined if they have no sandbox ID or no pod UID. */
export function podStats({ attributes, linux }: CriPodSandboxStats): PodStats | undefined {
  if (!attributes?.id || !attributes.metadata?.uid) return undefined;
  const containers = (linux?.containers ?? []).flatMap((container) => containerStats(container) ?? []);
  return {
    uid: attributes.metadata.uid,
    cpu: taken(linux?.cpu, cpuUsage),
    memory: taken(linux?.memory, memoryUsage),
    containers,
  };
}

function containerStats({ attributes, writableLayer }: CriContainerStats) {
  if (!attributes?.id) return undefined;
  return { id: attributes.id, writableLayer: taken(writableLayer, writableLayerUsage) };
}

function taken<Reading extends { timestamp: bigint }, Usage>(
  reading: Reading | undefined,
  usageOf: (reading: Reading) => Usage,
): Usage | undefined {
  return reading && reading.timestamp !== 0n ? usageOf(reading) : undefined;
}

function cpuUsage(cpu: CriCpuUsage): CpuUsage {
  return {
    takenAt: cpu.timestamp,
    usageCoreNanoSeconds: cpu.usageCoreNanoSeconds?.value,
    usageNanoCores: cpu.usageNanoCores?.value,
  };
}

function memoryUsage(memory: CriMemoryUsage): MemoryUsage {
  return {
    takenAt: memory.timestamp,
    workingSetBytes: memory.workingSetBytes?.value,
    usageBytes: memory.usageBytes?.value,
    rssBytes: memory.rssBytes?.value,
  };
}

function writableLayerUsage({ usedBytes, inodesUsed }: CriFilesystemUsage): WritableLayerUsage {
  return { usedBytes: usedBytes?.value, inodesUsed: inodesUsed?.value };
}
