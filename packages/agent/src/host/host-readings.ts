import { type Clock, RecentMap, RecentWork } from "@nodekeeper/core/lib";
import { type CpuTimes, type CpuUse, cpuUseBetween } from "./cpu-times.ts";
import type { Host } from "./host.ts";
import { cpuBetween, type PodActivity, type PodCounters } from "./pod-activity.ts";
import type { PodReadings } from "./pod-readings.ts";
import type { PressureResource } from "./pressure.ts";
import type { Reading } from "./reading.ts";

export interface HostReadingsOptions {
  host: Host;
  pods: PodReadings;
  clock: Clock;
  /**
   * Returns how long a reading is reused, in milliseconds; less than the interval between rounds. Called for each
   * reading.
   */
  maxAgeMs: () => number;
}

// Paths and cgroups come from the configuration, which is limited to fewer of them.
const MAX_KEYS = 64;

/**
 * Readings of the host, shared by all plugins. Each source is read at most once per period, when a plugin first needs
 * it. Calls throw only their signal's reason. Failures are part of the Reading.
 */
export class HostReadings {
  readonly #options: HostReadingsOptions;
  readonly #refreshed: ReadonlyMap<string, RecentWork<Reading<unknown>>>[] = [];
  #countersBefore: { counters: ReadonlyMap<string, PodCounters>; at: number } | undefined;
  #cpuBefore: CpuTimes | undefined;

  readonly memory = this.#row(({ host }) => host.memory());
  /** Memory by NUMA node, from the kernel's page allocator. */
  readonly nodeMemory = this.#row(({ host }) => host.nodeMemory());
  readonly pids = this.#row(({ host }) => host.pids());
  /** One-minute load average. */
  readonly loadAverage = this.#row(({ host }) => host.loadAverage());
  /** Resource usage of pods, from cgroups. */
  readonly pods = this.#row(({ pods }) => pods.pods());
  /** Memory usage of all pods and the limit of their parent cgroup. */
  readonly allocatableMemory = this.#row(({ pods }) => pods.allocatableMemory());
  /** CPU usage since the previous reading; `missing` on the first one. Not affected by `refresh`. */
  readonly cpu = this.#row(() => this.#readCpu(), false);
  /** CPU usage since the previous reading and process count of each pod, from cgroups. Not affected by `refresh`. */
  readonly podActivity = this.#row(() => this.#readPodActivity(), false);
  /** Pressure of the whole host. */
  readonly pressure = this.#rowByKey(({ host }, resource: PressureResource) => host.pressure(resource));
  /** Memory pressure of a cgroup. The path is relative to the mount: "/kubepods.slice". */
  readonly cgroupPressure = this.#rowByKey(({ pods }, cgroup: string) => pods.pressure(cgroup, "memory"));
  /** State of the file system that contains a path. */
  readonly filesystem = this.#rowByKey(({ host }, path: string) => host.filesystem(path));

  constructor(options: HostReadingsOptions) {
    this.#options = options;
  }

  /**
   * Expires all readings, so that a round does not decide by the readings of the previous one. CPU usage of the host
   * and of pods is excluded: it covers the time between two readings, which must not be too short.
   */
  refresh(): void {
    for (const byKey of this.#refreshed) for (const shared of byKey.values()) shared.expire();
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
    this.#cpuBefore = reading.value;
    const use = before && cpuUseBetween(before, reading.value);
    if (use) return { ...reading, value: use };
    const message = before
      ? "the CPU counters decreased or did not advance since the last reading"
      : "CPU usage needs two readings; this is the first";
    return { state: "missing", at: reading.at, message };
  }

  /** @param isRefreshed whether `refresh` expires the reading */
  #row<T>(read: (sources: HostReadingsOptions) => Promise<Reading<T>>, isRefreshed = true) {
    const byKey = this.#rowByKey(read, isRefreshed);
    return (signal: AbortSignal) => byKey("", signal);
  }

  #rowByKey<K extends string, T>(
    read: (sources: HostReadingsOptions, key: K) => Promise<Reading<T>>,
    isRefreshed = true,
  ) {
    const byKey = new RecentMap<K, RecentWork<Reading<T>>>(MAX_KEYS);
    if (isRefreshed) this.#refreshed.push(byKey);
    return (key: K, signal: AbortSignal): Promise<Reading<T>> => {
      const { clock, maxAgeMs } = this.#options;
      const shared = byKey.get(key) ?? new RecentWork(clock, maxAgeMs, () => read(this.#options, key));
      byKey.set(key, shared);
      return shared.get(signal);
    };
  }
}
