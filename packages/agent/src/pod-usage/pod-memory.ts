import { type Clock, RecentWork, toNodekeeperError, withDeadline } from "@nodekeeper/core/lib";
import type { ObservedPod } from "../eviction/index.ts";
import { freshReading, type HostReadings, type Reading } from "../host/index.ts";
import type { PodStats, PodStatsReader } from "../runtime/index.ts";

/** Total memory of a pod's containers, bytes; undefined if it is not reported. */
export interface PodMemory {
  usageBytes: number | undefined;
  rssBytes: number | undefined;
  workingSetBytes: number | undefined;
  /** By NUMA node; undefined on machines with one node, and if read from a runtime. */
  nodeBytes: ReadonlyMap<number, number> | undefined;
}

export interface PodMemoriesOptions {
  readings: Pick<HostReadings, "pods">;
  /** Used for running pods without a cgroup at the kubelet's path; undefined if no runtime is used. */
  runtimeStats: PodStatsReader | undefined;
  clock: Clock;
}

// Older values are not used, milliseconds. Runtimes update their statistics about every ten seconds.
export const LONGEST_AGE_MS = 30_000;
// Bounds the calls to the runtime, which reads all containers for each of them. Milliseconds.
const RUNTIME_PERIOD_MS = 10_000;
const RUNTIME_DEADLINE_MS = 2_000;

/** Memory of pods as reported by their cgroups, or by the runtime for pods without a cgroup. */
export class PodMemories {
  readonly #options: PodMemoriesOptions;
  readonly #runtime: RecentWork<Reading<readonly PodStats[]>> | undefined;
  #last: ReadonlyMap<string, PodMemory> = new Map();

  constructor(options: PodMemoriesOptions) {
    const { runtimeStats, clock } = options;
    this.#options = options;
    this.#runtime = runtimeStats && sharedPodStats(runtimeStats, clock);
  }

  /** Returns the memory of a pod as of the last call of `of`; undefined if unknown. Reads nothing. */
  lastOf(uid: string): PodMemory | undefined {
    return this.#last.get(uid);
  }

  /**
   * Returns memory by UID; pods of unknown usage are omitted. The reading fails only if neither source can be read.
   * Throws only the signal's reason.
   */
  async of(
    pods: readonly ObservedPod[],
    signal: AbortSignal,
  ): Promise<Reading<ReadonlyMap<string, PodMemory>>> {
    const now = () => this.#options.clock.monotonic();
    const found = new Map<string, PodMemory>();
    this.#last = found;
    const cgroups = freshReading(await this.#options.readings.pods(signal), now(), LONGEST_AGE_MS);
    if (cgroups.state === "read") {
      for (const { pod } of pods) {
        const memory = cgroups.value.pods.get(pod.uid)?.memory;
        if (memory) found.set(pod.uid, memory);
      }
    }
    const isMissing = pods.some(({ pod }) => pod.phase === "Running" && !found.has(pod.uid));
    if (!isMissing || !this.#runtime) return withValue(cgroups, found);
    const runtime = freshReading(await this.#runtime.get(signal), now(), LONGEST_AGE_MS);
    if (runtime.state !== "read") return withValue(cgroups, found);
    for (const stats of runtime.value) {
      const memory = runtimeMemory(stats, this.#options.clock.now());
      if (memory && !found.has(stats.uid)) found.set(stats.uid, memory);
    }
    return { ...runtime, value: found };
  }
}

function withValue<T>(reading: Reading<unknown>, value: T): Reading<T> {
  return reading.state === "read" ? { ...reading, value } : reading;
}

/** Returns the runtime's statistics of pods, read at most every ten seconds, each time within a deadline. */
export function sharedPodStats(
  stats: PodStatsReader,
  clock: Clock,
): RecentWork<Reading<readonly PodStats[]>> {
  return new RecentWork(
    clock,
    () => RUNTIME_PERIOD_MS,
    () => readPodStats(stats, clock),
  );
}

async function readPodStats(stats: PodStatsReader, clock: Clock): Promise<Reading<readonly PodStats[]>> {
  const at = clock.monotonic();
  try {
    const what = "statistics of pods from the runtime";
    const value = await withDeadline(clock, { ms: RUNTIME_DEADLINE_MS, name: what }, undefined, (signal) =>
      stats.podStats(signal),
    );
    return { state: "read", at, value, problems: [] };
  } catch (error) {
    return { state: "failed", at, error: toNodekeeperError(error) };
  }
}

// The age of the values is known only from the wall time that the runtime reports.
function runtimeMemory({ memory }: PodStats, now: number): PodMemory | undefined {
  if (!memory || Math.abs(now - Number(memory.takenAt / 1_000_000n)) > LONGEST_AGE_MS) return undefined;
  return {
    usageBytes: numberOf(memory.usageBytes),
    rssBytes: numberOf(memory.rssBytes),
    workingSetBytes: numberOf(memory.workingSetBytes),
    nodeBytes: undefined,
  };
}

function numberOf(bytes: bigint | undefined): number | undefined {
  return bytes === undefined ? undefined : Number(bytes);
}
