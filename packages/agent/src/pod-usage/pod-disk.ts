import type { Clock } from "@nodekeeper/core/lib";
import { freshReading, mapReading, type Reading, SharedReading } from "../host/index.ts";
import type { PodStats, RuntimeStats } from "../runtime/index.ts";
import { LONGEST_AGE_MS, RUNTIME_PERIOD_MS, readPodStats } from "./pod-memory.ts";

/** What a pod has on disk in the writable layers of its containers; what is not known of all of them is undefined. */
export interface PodDisk {
  bytes: number | undefined;
  inodes: number | undefined;
}

export interface PodDisksOptions {
  /** Undefined: no runtime is asked, and nothing is known. */
  runtimeStats: Pick<RuntimeStats, "pods"> | undefined;
  clock: Clock;
}

/** Disk use of pods by the container runtime's word, which is asked at most every ten seconds. */
export class PodDisks {
  readonly #clock: Clock;
  readonly #stats: SharedReading<readonly PodStats[]> | undefined;

  constructor({ runtimeStats, clock }: PodDisksOptions) {
    this.#clock = clock;
    this.#stats =
      runtimeStats &&
      new SharedReading(
        clock,
        () => RUNTIME_PERIOD_MS,
        () => readPodStats(runtimeStats, clock),
      );
  }

  /** By UID. Throws the signal's reason alone. */
  async all(signal: AbortSignal): Promise<Reading<ReadonlyMap<string, PodDisk>>> {
    const now = this.#clock.monotonic();
    if (!this.#stats) return { state: "missing", at: now, message: "no container runtime is asked" };
    const fresh = freshReading(await this.#stats.get(signal), this.#clock.monotonic(), LONGEST_AGE_MS);
    return mapReading(fresh, (pods) => new Map(pods.map((pod) => [pod.uid, diskOf(pod)])), "");
  }
}

// A part of a sum would make a pod look smaller than it is: containers that were not measured yet leave it unknown.
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
