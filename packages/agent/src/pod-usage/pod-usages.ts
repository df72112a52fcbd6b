import { type Clock, RecentWork } from "@nodekeeper/core/lib";
import { cpuBetween, type PodReadings, type Reading, readingProblem, readingValue } from "../host/index.ts";
import type { PodStats, PodStatsReader } from "../runtime/index.ts";
import { LONGEST_AGE_MS, sharedPodStats } from "./pod-memory.ts";

/** What a pod uses now. */
export interface PodUsage {
  uid: string;
  /** CPUs, such as 0.25. Undefined if unknown: `cpuUnknown` is the reason. */
  cpu?: number;
  cpuUnknown?: string;
  /** Working set, bytes. Undefined if unknown: `memoryUnknown` is the reason. */
  memoryBytes?: number;
  memoryUnknown?: string;
}

/** Usage of all pods that a source reports. */
export interface PodUsagePage {
  /** Wall milliseconds of the reading. */
  readAt: number;
  items: PodUsage[];
  /** Why a source could not be read. */
  problems: string[];
}

export interface PodUsagesOptions {
  cgroups: Pick<PodReadings, "pods" | "counters">;
  /** Used for running pods that have no cgroup at the kubelet's path. Undefined without a container runtime. */
  runtimeStats: PodStatsReader | undefined;
  /** UIDs of the pods that run, as far as they are known. */
  runningPods: () => readonly string[];
  clock: Clock;
}

// Answers within this time share one reading, milliseconds.
const PERIOD_MS = 5_000;
// Longest interval over which CPU usage is averaged, milliseconds. A longer average would not show the current usage.
const LONGEST_INTERVAL_MS = 60_000;
const FIRST_READING = "CPU usage needs two readings within a minute; this is the first";
const NOT_IN_CGROUP = "its cgroup does not report it";
const NOT_IN_RUNTIME = "the container runtime does not report it";
const OUTDATED = `the container runtime's figure is not of the last ${LONGEST_AGE_MS / 1_000} s`;

/** CPU time of a pod, by the clock of its source. */
interface Counter {
  source: "cgroup" | "runtime";
  cpuSeconds: number;
  atMs: number;
  /** CPUs since the counter before. Undefined if unknown. */
  cpu?: number | undefined;
}

/**
 * Current CPU and memory usage of pods. Reads on demand, at most once in five seconds, and separately from the readings
 * of eviction rounds, so that a request never influences a decision.
 */
export class PodUsages {
  readonly #options: PodUsagesOptions;
  readonly #runtime: RecentWork<Reading<readonly PodStats[]>> | undefined;
  readonly #reading: RecentWork<PodUsagePage>;
  #before: ReadonlyMap<string, Counter> = new Map();

  constructor(options: PodUsagesOptions) {
    const { runtimeStats, clock } = options;
    this.#options = options;
    this.#runtime = runtimeStats && sharedPodStats(runtimeStats, clock);
    this.#reading = new RecentWork(
      clock,
      () => PERIOD_MS,
      () => this.#read(),
    );
  }

  /** Returns the usage of all pods that the sources report. Throws only the signal's reason. */
  read(signal: AbortSignal): Promise<PodUsagePage> {
    return this.#reading.get(signal);
  }

  async #read(): Promise<PodUsagePage> {
    const { cgroups, runningPods, clock } = this.#options;
    const [memory, counters] = [await cgroups.pods(), await cgroups.counters()];
    const now = clock.monotonic();
    const [used, times] = [readingValue(memory)?.pods, readingValue(counters)];
    const found = new Map<string, PodUsage>();
    const seen = new Map<string, Counter>();
    for (const uid of new Set([...(used?.keys() ?? []), ...(times?.keys() ?? [])])) {
      const cpuSeconds = times?.get(uid)?.cpuSeconds;
      const counter =
        cpuSeconds === undefined ? undefined : ({ source: "cgroup", cpuSeconds, atMs: now } as const);
      found.set(uid, {
        uid,
        ...memoryOf(used?.get(uid)?.memory.workingSetBytes, readingProblem(memory) ?? NOT_IN_CGROUP),
        ...(counter
          ? this.#cpuOf(uid, counter, seen)
          : { cpuUnknown: readingProblem(counters) ?? NOT_IN_CGROUP }),
      });
    }
    const problems = [readingProblem(memory), readingProblem(counters)];
    if (this.#runtime && runningPods().some((uid) => !found.has(uid))) {
      const runtime = await this.#runtime.get(new AbortController().signal);
      problems.push(readingProblem(runtime));
      for (const stats of runtime.state === "read" ? runtime.value : [])
        if (!found.has(stats.uid)) found.set(stats.uid, this.#runtimeUsage(stats, seen));
    }
    this.#before = seen;
    return {
      readAt: clock.now(),
      items: [...found.values()],
      problems: [...new Set(problems.filter((problem) => problem !== undefined))],
    };
  }

  #runtimeUsage({ uid, cpu, memory }: PodStats, seen: Map<string, Counter>): PodUsage {
    const isOld = (reading: { takenAt: bigint } | undefined) =>
      reading && Math.abs(this.#options.clock.now() - milliseconds(reading.takenAt)) > LONGEST_AGE_MS;
    const bytes = isOld(memory) ? undefined : memory?.workingSetBytes;
    const usage = {
      uid,
      ...memoryOf(bytes === undefined ? undefined : Number(bytes), isOld(memory) ? OUTDATED : NOT_IN_RUNTIME),
    };
    if (isOld(cpu)) return { ...usage, cpuUnknown: OUTDATED };
    const { usageNanoCores: current, usageCoreNanoSeconds: total } = cpu ?? {};
    const counter =
      cpu && total !== undefined
        ? ({ source: "runtime", cpuSeconds: seconds(total), atMs: milliseconds(cpu.takenAt) } as const)
        : undefined;
    const average = counter && this.#cpuOf(uid, counter, seen);
    // containerd reports a current usage of 0 if it has no earlier measurement of the pod.
    if (current !== undefined && (current > 0n || average === undefined))
      return { ...usage, cpu: seconds(current) };
    return { ...usage, ...(average ?? { cpuUnknown: NOT_IN_RUNTIME }) };
  }

  #cpuOf(uid: string, counter: Counter, seen: Map<string, Counter>): Pick<PodUsage, "cpu" | "cpuUnknown"> {
    const before = this.#before.get(uid);
    const cpu = before && cpuSince(before, counter);
    seen.set(uid, { ...counter, cpu });
    return cpu === undefined ? { cpuUnknown: FIRST_READING } : { cpu };
  }
}

function cpuSince(before: Counter, counter: Counter): number | undefined {
  if (before.source !== counter.source) return undefined;
  const elapsedMs = counter.atMs - before.atMs;
  // A runtime may measure less often than it is read.
  if (elapsedMs === 0) return before.cpu;
  if (elapsedMs > LONGEST_INTERVAL_MS) return undefined;
  return cpuBetween({ ...before, pids: undefined }, { ...counter, pids: undefined }, elapsedMs);
}

function memoryOf(
  memoryBytes: number | undefined,
  why: string,
): Pick<PodUsage, "memoryBytes" | "memoryUnknown"> {
  return memoryBytes === undefined ? { memoryUnknown: why } : { memoryBytes };
}

function seconds(nanoseconds: bigint): number {
  return Number(nanoseconds) / 1e9;
}

function milliseconds(nanoseconds: bigint): number {
  return Number(nanoseconds / 1_000_000n);
}
