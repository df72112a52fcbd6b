import type { Clock } from "@nodekeeper/core/lib";
import { type CpuTimes, type CpuUse, cpuUseBetween } from "./cpu-times.ts";
import type { FilesystemState } from "./filesystem.ts";
import type { Host } from "./host.ts";
import type { MemoryState } from "./memory.ts";
import type { PidState } from "./pids.ts";
import { cpuBetween, type PodActivity, type PodCounters } from "./pod-activity.ts";
import type { AllocatableMemory, ContainerUse, PodReadings, PodsState } from "./pod-readings.ts";
import type { Pressure, PressureResource } from "./pressure.ts";
import type { Reading } from "./reading.ts";
import { SharedReading, SharedReadings } from "./shared-reading.ts";
import type { NodeMemory } from "./zone-info.ts";

export interface HostReadingsOptions {
  host: Host;
  pods: PodReadings;
  clock: Clock;
  /** How old a reading may be that is handed out again, milliseconds; less than the period of a round. Called each time. */
  maxAgeMs: () => number;
}

// Paths and cgroups come from configuration: no configuration needs more of them than this.
const MOST_KEYS = 64;

/**
 * The machine's state for all plugins: each source is read once a period, when the first of them asks. No call throws
 * but for its signal; what is wrong with a source is in its Reading.
 */
export class HostReadings {
  readonly #options: HostReadingsOptions;
  readonly #memory: SharedReading<MemoryState>;
  readonly #nodeMemory: SharedReading<NodeMemory[]>;
  readonly #cpu: SharedReading<CpuUse>;
  readonly #pids: SharedReading<PidState>;
  readonly #loadAverage: SharedReading<number>;
  readonly #pods: SharedReading<PodsState>;
  readonly #podActivity: SharedReading<ReadonlyMap<string, PodActivity>>;
  readonly #allocatableMemory: SharedReading<AllocatableMemory>;
  readonly #containers: SharedReading<ReadonlyMap<string, ContainerUse>>;
  readonly #pressure: SharedReadings<Pressure>;
  readonly #cgroupPressure: SharedReadings<Pressure>;
  readonly #filesystems: SharedReadings<FilesystemState>;
  #countersBefore: { counters: ReadonlyMap<string, PodCounters>; at: number } | undefined;
  #cpuBefore: { times: CpuTimes; at: number } | undefined;

  constructor(options: HostReadingsOptions) {
    const { host, pods } = options;
    this.#options = options;
    this.#memory = this.#shared(() => host.memory());
    this.#nodeMemory = this.#shared(() => host.nodeMemory());
    this.#cpu = this.#shared(() => this.#readCpu());
    this.#pids = this.#shared(() => host.pids());
    this.#loadAverage = this.#shared(() => host.loadAverage());
    this.#pods = this.#shared(() => pods.pods());
    this.#podActivity = this.#shared(() => this.#readPodActivity());
    this.#allocatableMemory = this.#shared(() => pods.allocatableMemory());
    this.#containers = this.#shared(() => pods.containers());
    this.#pressure = this.#sharedByKey((resource) => host.pressure(resource as PressureResource));
    this.#cgroupPressure = this.#sharedByKey((cgroup) => pods.pressure(cgroup, "memory"));
    this.#filesystems = this.#sharedByKey((path) => host.filesystem(path));
  }

  /**
   * Has every source read again when it is asked for next, for a round must not decide by what the round before saw. Not
   * the use of CPUs, by the machine and by pods: it is that of the time between two readings, which must not be too short.
   */
  refresh(): void {
    for (const shared of [this.#memory, this.#nodeMemory, this.#pids, this.#pods, this.#containers]) {
      shared.expire();
    }
    this.#allocatableMemory.expire();
    this.#loadAverage.expire();
    for (const shared of [this.#pressure, this.#cgroupPressure, this.#filesystems]) shared.expire();
  }

  memory(signal: AbortSignal): Promise<Reading<MemoryState>> {
    return this.#memory.get(signal);
  }

  /** Memory by NUMA node, as the kernel's page allocator sees it. */
  nodeMemory(signal: AbortSignal): Promise<Reading<NodeMemory[]>> {
    return this.#nodeMemory.get(signal);
  }

  /** Since the reading before; `missing` the first time. */
  cpu(signal: AbortSignal): Promise<Reading<CpuUse>> {
    return this.#cpu.get(signal);
  }

  pids(signal: AbortSignal): Promise<Reading<PidState>> {
    return this.#pids.get(signal);
  }

  /** Tasks that ran or waited to run, the mean of the last minute. */
  loadAverage(signal: AbortSignal): Promise<Reading<number>> {
    return this.#loadAverage.get(signal);
  }

  /** Pressure on the whole machine. */
  pressure(resource: PressureResource, signal: AbortSignal): Promise<Reading<Pressure>> {
    return this.#pressure.get(resource, signal);
  }

  /** Memory pressure on one cgroup. @param cgroup path below the mount: "/kubepods.slice" */
  cgroupPressure(cgroup: string, signal: AbortSignal): Promise<Reading<Pressure>> {
    return this.#cgroupPressure.get(cgroup, signal);
  }

  /** The file system that holds a path. */
  filesystem(path: string, signal: AbortSignal): Promise<Reading<FilesystemState>> {
    return this.#filesystems.get(path, signal);
  }

  /** What pods use, by cgroups. */
  pods(signal: AbortSignal): Promise<Reading<PodsState>> {
    return this.#pods.get(signal);
  }

  /** CPUs and processes of pods, by cgroups: CPUs since the reading before. */
  podActivity(signal: AbortSignal): Promise<Reading<ReadonlyMap<string, PodActivity>>> {
    return this.#podActivity.get(signal);
  }

  /** Memory of all pods together against what the node lets them use. */
  allocatableMemory(signal: AbortSignal): Promise<Reading<AllocatableMemory>> {
    return this.#allocatableMemory.get(signal);
  }

  /** What containers use, by cgroups. */
  containers(signal: AbortSignal): Promise<Reading<ReadonlyMap<string, ContainerUse>>> {
    return this.#containers.get(signal);
  }

  async #readPodActivity(): Promise<Reading<ReadonlyMap<string, PodActivity>>> {
    const reading = await this.#options.pods.counters();
    if (reading.state !== "read") return reading;
    const before = this.#countersBefore;
    const at = this.#options.clock.monotonic();
    this.#countersBefore = { counters: reading.value, at };
    const activity = new Map<string, PodActivity>();
    for (const [uid, counters] of reading.value) {
      const cpu = before && cpuBetween(before.counters.get(uid), counters, at - before.at);
      activity.set(uid, { cpu, pids: counters.pids });
    }
    return { ...reading, value: activity };
  }

  async #readCpu(): Promise<Reading<CpuUse>> {
    const reading = await this.#options.host.cpuTimes();
    if (reading.state !== "read") return reading;
    const before = this.#cpuBefore;
    const at = this.#options.clock.monotonic();
    this.#cpuBefore = { times: reading.value, at };
    const use = before && cpuUseBetween(before.times, reading.value, at - before.at);
    if (use) return { ...reading, value: use };
    return {
      state: "missing",
      at: reading.at,
      message: "the use of CPUs needs two readings, of which there is one",
    };
  }

  #shared<T>(read: () => Promise<Reading<T>>): SharedReading<T> {
    return new SharedReading(this.#options.clock, this.#options.maxAgeMs, read);
  }

  #sharedByKey<T>(read: (key: string) => Promise<Reading<T>>): SharedReadings<T> {
    return new SharedReadings(MOST_KEYS, (key) => this.#shared(() => read(key)));
  }
}
