import type { Clock } from "../lib/index.ts";
import { type CpuTimes, type CpuUse, cpuUseBetween } from "./cpu-times.ts";
import type { FilesystemState } from "./filesystem.ts";
import type { Host } from "./host.ts";
import type { MemoryState } from "./memory.ts";
import type { PidState } from "./pids.ts";
import type { ContainerUse, PodReadings, PodsState } from "./pod-readings.ts";
import type { Pressure, PressureResource } from "./pressure.ts";
import type { Reading } from "./reading.ts";
import { SharedReading, SharedReadings } from "./shared-reading.ts";
import type { NodeMemory } from "./zone-info.ts";

export interface HostReadingsOptions {
  host: Host;
  pods: PodReadings;
  clock: Clock;
  /** How old a reading may be that is handed out again, milliseconds; less than the period of a round. Asked anew each time. */
  maxAgeMs: () => number;
}

// Paths and cgroups come from configuration: nobody names more of them than this.
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
  readonly #pods: SharedReading<PodsState>;
  readonly #containers: SharedReading<ReadonlyMap<string, ContainerUse>>;
  readonly #pressure: SharedReadings<Pressure>;
  readonly #cgroupPressure: SharedReadings<Pressure>;
  readonly #filesystems: SharedReadings<FilesystemState>;
  #cpuBefore: { times: CpuTimes; at: number } | undefined;

  constructor(options: HostReadingsOptions) {
    const { host, pods } = options;
    this.#options = options;
    this.#memory = this.#shared(() => host.memory());
    this.#nodeMemory = this.#shared(() => host.nodeMemory());
    this.#cpu = this.#shared(() => this.#readCpu());
    this.#pids = this.#shared(() => host.pids());
    this.#pods = this.#shared(() => pods.pods());
    this.#containers = this.#shared(() => pods.containers());
    this.#pressure = this.#sharedByKey((resource) => host.pressure(resource as PressureResource));
    this.#cgroupPressure = this.#sharedByKey((cgroup) => pods.pressure(cgroup, "memory"));
    this.#filesystems = this.#sharedByKey((path) => host.filesystem(path));
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

  /** What containers use, by cgroups. */
  containers(signal: AbortSignal): Promise<Reading<ReadonlyMap<string, ContainerUse>>> {
    return this.#containers.get(signal);
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
      message: "the use of CPUs is told by two readings, of which there is one",
    };
  }

  #shared<T>(read: () => Promise<Reading<T>>): SharedReading<T> {
    return new SharedReading(this.#options.clock, this.#options.maxAgeMs, read);
  }

  #sharedByKey<T>(read: (key: string) => Promise<Reading<T>>): SharedReadings<T> {
    return new SharedReadings(MOST_KEYS, (key) => this.#shared(() => read(key)));
  }
}
