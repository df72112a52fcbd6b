import { type Clock, toNodekeeperError, withDeadline } from "@nodekeeper/core/lib";
import type { ObservedPod } from "../eviction/index.ts";
import { freshReading, type HostReadings, type Reading, SharedReading } from "../host/index.ts";
import type { PodStats, RuntimeStats } from "../runtime/index.ts";

/** What a pod's containers use together, bytes; what is not reported is undefined. */
export interface PodMemory {
  usageBytes: number | undefined;
  rssBytes: number | undefined;
  workingSetBytes: number | undefined;
  /** By NUMA node; undefined on machines of one, and from a runtime. */
  nodeBytes: ReadonlyMap<number, number> | undefined;
}

export interface PodMemoriesOptions {
  readings: Pick<HostReadings, "pods">;
  /** Asked for running pods that have no cgroup where the kubelet makes them; undefined: the runtime is not asked. */
  runtimeStats: Pick<RuntimeStats, "pods"> | undefined;
  clock: Clock;
}

// Older figures are not used, milliseconds. Runtimes collect theirs every ten seconds or so.
export const LONGEST_AGE_MS = 30_000;
// Runtimes walk all containers for this answer.
export const RUNTIME_PERIOD_MS = 10_000;
const RUNTIME_DEADLINE_MS = 2_000;

/** Memory of pods by their cgroups, and by the runtime's word for those without one. */
export class PodMemories {
  readonly #options: PodMemoriesOptions;
  readonly #runtime: SharedReading<readonly PodStats[]> | undefined;
  #last: ReadonlyMap<string, PodMemory> = new Map();

  constructor(options: PodMemoriesOptions) {
    const { runtimeStats, clock } = options;
    this.#options = options;
    this.#runtime =
      runtimeStats &&
      new SharedReading(
        clock,
        () => RUNTIME_PERIOD_MS,
        () => readPodStats(runtimeStats, clock),
      );
  }

  /** What a pod used when a plugin last asked; undefined where that is not known. Reads nothing. */
  lastOf(uid: string): PodMemory | undefined {
    return this.#last.get(uid);
  }

  /**
   * By UID; a pod of which nothing is known now is absent. The reading fails only where neither source answers.
   * Throws the signal's reason alone.
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

/** The runtime's statistics of pods, within a deadline. */
export async function readPodStats(
  stats: Pick<RuntimeStats, "pods">,
  clock: Clock,
): Promise<Reading<readonly PodStats[]>> {
  const at = clock.monotonic();
  try {
    const what = "statistics of pods from the runtime";
    const value = await withDeadline(clock, RUNTIME_DEADLINE_MS, what, undefined, (signal) =>
      stats.pods(signal),
    );
    return { state: "read", at, value, problems: [] };
  } catch (error) {
    return { state: "failed", at, error: toNodekeeperError(error) };
  }
}

// The runtime gives wall time: all there is of the age of its figures.
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
