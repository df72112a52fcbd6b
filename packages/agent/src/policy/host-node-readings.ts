import { messageOf } from "@nodekeeper/core/lib";
import {
  type AllocatableMemory,
  type CpuUse,
  type FilesystemState,
  type HostReadings,
  type HostSample,
  type MemoryState,
  type PidState,
  type PodActivity,
  type Pressure,
  type PressureResource,
  type Reading,
  readingProblem,
} from "../host/index.ts";
import type { PodDisk, PodDisks, PodMemories, PodMemory } from "../pod-usage/index.ts";
import type { PodUsage } from "./fields.ts";
import type { NodeReadings, NodeSnapshot, Part } from "./node-snapshot.ts";
import type { PodUsageReader } from "./pod-variable.ts";

export interface HostNodeReadingsOptions {
  readings: Pick<HostReadings, "memory" | "cpu" | "pids" | "pressure" | "filesystem" | "allocatableMemory">;
  /** The nodefs: the kubelet's root directory, such as "/var/lib/kubelet". */
  nodefsPath: string;
  /**
   * Returns the path of the imagefs, where the runtime stores images. If it rejects, the part is missing for
   * the reason of the rejection.
   */
  imagefsPath: (signal: AbortSignal) => Promise<string>;
  /**
   * Returns the path of the containerfs, where the runtime stores writable layers. Rejects like
   * `imagefsPath`.
   */
  containerfsPath: (signal: AbortSignal) => Promise<string>;
}

/** Readings of the node for policies. The policies of a round share them. */
export class HostNodeReadings implements NodeReadings {
  readonly #options: HostNodeReadingsOptions;

  constructor(options: HostNodeReadingsOptions) {
    this.#options = options;
  }

  async read(reads: readonly string[], signal: AbortSignal): Promise<NodeSnapshot> {
    const { readings, nodefsPath, imagefsPath } = this.#options;
    const wanted = <T>(group: string, part: () => Promise<Part<T>>): Promise<Part<T>> =>
      reads.some((path) => path.startsWith(`node.${group}.`)) ? part() : Promise.resolve(notRead);
    const pressure = (resource: PressureResource) =>
      wanted(`psi.${resource}`, async () => partOf(await readings.pressure(resource, signal), pressurePart));
    const [memory, cpu, pids, allocatableMemory, memoryPressure, cpuPressure, ioPressure] = await Promise.all(
      [
        wanted("memory", async () => partOf(await readings.memory(signal), memoryPart)),
        wanted("cpu", async () => partOf(await readings.cpu(signal), cpuPart)),
        wanted("pids", async () => partOf(await readings.pids(signal), pidsPart)),
        wanted("allocatableMemory", async () =>
          partOf(await readings.allocatableMemory(signal), allocatableMemoryPart),
        ),
        pressure("memory"),
        pressure("cpu"),
        pressure("io"),
      ],
    );
    // Sequential, because only one thread waits for filesystems.
    const nodefs = await wanted("nodefs", () => this.#filesystem(async () => nodefsPath, signal));
    const imagefs = await wanted("imagefs", () => this.#filesystem(imagefsPath, signal));
    const containerfs = await wanted("containerfs", () => this.#containerfs(signal));
    const psi = { memory: memoryPressure, cpu: cpuPressure, io: ioPressure };
    return { memory, psi, cpu, pids, allocatableMemory, nodefs, imagefs, containerfs };
  }

  async #filesystem(
    path: (signal: AbortSignal) => Promise<string>,
    signal: AbortSignal,
  ): Promise<NodeSnapshot["nodefs"]> {
    try {
      return partOf(await this.#options.readings.filesystem(await path(signal), signal), filesystemPart);
    } catch (error) {
      signal.throwIfAborted();
      return { missing: messageOf(error) };
    }
  }

  async #containerfs(signal: AbortSignal): Promise<NodeSnapshot["containerfs"]> {
    const { imagefsPath, containerfsPath } = this.#options;
    const part = await this.#filesystem(containerfsPath, signal);
    if (!("value" in part)) return part;
    try {
      const isSeparate = (await imagefsPath(signal)) === (await containerfsPath(signal)) ? 0 : 1;
      return { ...part, value: { ...part.value, isSeparate } };
    } catch (error) {
      signal.throwIfAborted();
      return { missing: messageOf(error) };
    }
  }
}

const notRead = { missing: "is not read" };

/** The parts that are sampled between rounds. Other parts are missing. */
export const sampledParts: readonly string[] = ["memory", "psi", "pids"];

/**
 * Returns the node variable of a sample.
 * @param reads the fields that a policy reads; files for other fields are not read
 */
export function sampledNode(sample: HostSample, reads: readonly string[]): NodeSnapshot {
  const part = <T, U>(prefix: string, read: () => T | undefined, turn: (value: T) => U): Part<U> => {
    const value = reads.some((path) => path.startsWith(prefix)) ? read() : undefined;
    return value === undefined ? notSampled : { value: turn(value), at: sample.at };
  };
  const pressure = (resource: PressureResource) =>
    part(`node.psi.${resource}.`, () => sample.pressure(resource), pressurePart);
  return {
    memory: part("node.memory.", () => sample.memory(), memoryPart),
    psi: { memory: pressure("memory"), cpu: pressure("cpu"), io: pressure("io") },
    pids: part("node.pids.", () => sample.pids(), pidsPart),
    cpu: notSampled,
    nodefs: notSampled,
    imagefs: notSampled,
    containerfs: notSampled,
    allocatableMemory: notSampled,
  };
}

const notSampled = { missing: "is not sampled" };

/** Sources of pod usage. The in-tree plugins use the same ones. */
export interface PodUsageSources {
  memories: Pick<PodMemories, "of">;
  disks: Pick<PodDisks, "all">;
  readings: Pick<HostReadings, "podActivity">;
}

/**
 * Returns a reader of pod usage. It only reads requested fields, and its time is that of the oldest reading.
 */
export function podUsageOf({ memories, disks, readings }: PodUsageSources): PodUsageReader {
  return async (pods, reads, signal) => {
    const wants = (...fields: string[]) => reads.some((path) => fields.includes(path.slice(USAGE.length)));
    const parts: Part<ReadonlyMap<string, PodUsage>>[] = await Promise.all([
      ...(wants("memory", "workingSet", "rss")
        ? [memories.of(pods, signal).then(usagePart(memoryUsage))]
        : []),
      ...(wants("cpu", "pids") ? [readings.podActivity(signal).then(usagePart(activityUsage))] : []),
      ...(wants("disk", "inodes") ? [disks.all(signal).then(usagePart(diskUsage))] : []),
    ]);
    return merged(parts);
  };
}

const USAGE = "pod.usage.";

function usagePart<T>(usageOf: (value: T) => PodUsage) {
  return (reading: Reading<ReadonlyMap<string, T>>): Part<ReadonlyMap<string, PodUsage>> =>
    partOf(reading, (found) => new Map([...found].map(([uid, value]) => [uid, usageOf(value)])));
}

// The fields of a source without a reading are unknown, so policies that read them exclude the pods.
function merged(parts: readonly Part<ReadonlyMap<string, PodUsage>>[]): Part<ReadonlyMap<string, PodUsage>> {
  const read = parts.filter((part) => "value" in part);
  if (read.length === 0) return parts[0] ?? notRead;
  const usages = new Map<string, PodUsage>();
  for (const { value } of read) {
    for (const [uid, usage] of value) usages.set(uid, { ...usages.get(uid), ...usage });
  }
  return { value: usages, at: Math.min(...read.map(({ at }) => at)) };
}

function memoryUsage({ usageBytes, workingSetBytes, rssBytes }: PodMemory): PodUsage {
  return { memory: usageBytes, workingSet: workingSetBytes, rss: rssBytes };
}

function activityUsage({ cpu, pids }: PodActivity): PodUsage {
  return { cpu, pids };
}

function diskUsage({ bytes, inodes }: PodDisk): PodUsage {
  return { disk: bytes, inodes };
}

function partOf<T, U>(reading: Reading<T>, turn: (value: T) => U): Part<U> {
  if (reading.state === "read") return { value: turn(reading.value), at: reading.at };
  return { missing: readingProblem(reading) ?? "is not read" };
}

// As the kubelet computes it: memory in use minus inactive page cache.
function memoryPart(state: MemoryState) {
  const { totalBytes: total, freeBytes: free, availableBytes: available, inactiveFileBytes } = state;
  if (inactiveFileBytes === undefined) return { total, free, available };
  return { total, free, available, workingSet: Math.max(total - free - inactiveFileBytes, 0) };
}

function allocatableMemoryPart({ limitBytes, workingSetBytes }: AllocatableMemory) {
  return { capacity: limitBytes, workingSet: workingSetBytes };
}

function pressurePart({ some, full }: Pressure) {
  return { some, full };
}

function cpuPart({ share, cpus }: CpuUse) {
  return { usage: share, cores: cpus };
}

// A filesystem that allocates inodes dynamically reports 0 of them.
function filesystemPart(state: FilesystemState) {
  const space = { capacity: state.sizeBytes, available: state.availableBytes };
  return state.inodes > 0 ? { ...space, inodes: state.inodes, inodesFree: state.inodesFree } : space;
}

function pidsPart({ max, current }: PidState) {
  return { max, current };
}
