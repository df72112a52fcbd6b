import type { Clock, RecentWork } from "@nodekeeper/core/lib";
import { freshReading, mapReading, type Reading } from "../host/index.ts";
import type { PodStats, PodStatsReader } from "../runtime/index.ts";
import { LONGEST_AGE_MS, sharedPodStats } from "./pod-memory.ts";

/** Disk usage of the writable layers of a pod's containers; undefined if it is unknown for any of them. */
export interface PodDisk {
  bytes: number | undefined;
  inodes: number | undefined;
}

export interface PodDisksOptions {
  /** Undefined if no runtime is used: then nothing is known. */
  runtimeStats: PodStatsReader | undefined;
  clock: Clock;
}

/** Disk usage of pods as reported by the container runtime, read at most every ten seconds. */
export class PodDisks {
  readonly #clock: Clock;
  readonly #stats: RecentWork<Reading<readonly PodStats[]>> | undefined;

  constructor({ runtimeStats, clock }: PodDisksOptions) {
    this.#clock = clock;
    this.#stats = runtimeStats && sharedPodStats(runtimeStats, clock);
  }

  /** Returns disk usage by UID. Throws only the signal's reason. */
  async all(signal: AbortSignal): Promise<Reading<ReadonlyMap<string, PodDisk>>> {
    const now = this.#clock.monotonic();
    if (!this.#stats) return { state: "missing", at: now, message: "no container runtime is configured" };
    const fresh = freshReading(await this.#stats.get(signal), this.#clock.monotonic(), LONGEST_AGE_MS);
    return mapReading(fresh, (pods) => new Map(pods.map((pod) => [pod.uid, diskOf(pod)])), "");
  }
}

// A partial sum would be too small: if a container was not measured yet, the sum is unknown.
function diskOf({ containers }: PodStats): PodDisk {
  const sum = (amounts: readonly (bigint | undefined)[]): number | undefined => {
    if (amounts.length === 0 || amounts.includes(undefined)) return undefined;
    return amounts.reduce<number>((total, amount) => total + Number(amount), 0);
  };
  return {
    bytes: sum(containers.map(({ writableLayer }) => writableLayer?.usedBytes)),
    inodes: sum(containers.map(({ writableLayer }) => writableLayer?.inodesUsed)),
  };
}
