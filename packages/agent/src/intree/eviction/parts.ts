import type { Clock, Logger } from "@nodekeeper/core/lib";
import type { ObservedPod } from "../../eviction/index.ts";
import type { HostReadings, Reading } from "../../host/index.ts";
import type { PodDisks, PodMemories } from "../../pod-usage/index.ts";
import type { InTreeEvictionMetrics } from "./missing-readings.ts";

/** Readings and clients used by in-tree eviction plugins. */
export interface EvictionPluginParts {
  readings: HostReadings;
  memories: PodMemories;
  disks: Pick<PodDisks, "all">;
  /** Path of the filesystem of writable layers. Rejects if it is unknown. */
  rootfsPath: (signal: AbortSignal) => Promise<string>;
  /** All pods of this node, including those that cannot be evicted; undefined: only the round's candidates. */
  nodePods?: () => readonly ObservedPod[];
  /** Allocatable resources in this node's CustomNodeResource. */
  allocatable: ResourceListReader;
  /** Eviction score of a pod, lower first; undefined if unknown. Default: unknown for all pods. */
  scoreOf?: (pod: ObservedPod) => number | undefined;
  /** Period of regular rounds, milliseconds. */
  roundPeriodMs: () => number;
  clock: Clock;
  log: Logger;
  metrics: InTreeEvictionMetrics;
}

/** Reads a resource list, such as a CustomNodeResource's allocatable, with the time of the reading. */
export type ResourceListReader = (
  signal: AbortSignal,
) => Reading<Record<string, string>> | Promise<Reading<Record<string, string>>>;

/** Pods that are neither completed nor terminating: katalyst-core native.PodIsActive. */
export function activePods(pods: readonly ObservedPod[]): ObservedPod[] {
  return pods.filter(
    ({ pod }) => pod.phase !== "Succeeded" && pod.phase !== "Failed" && pod.deletionTimestamp === null,
  );
}
