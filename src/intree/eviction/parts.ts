import type { ObservedPod } from "../../eviction/index.ts";
import type { HostReadings, Reading } from "../../host/index.ts";
import type { Clock, Logger } from "../../lib/index.ts";
import type { InTreeEvictionMetrics } from "./missing-readings.ts";
import type { PodMemories } from "./pod-memory.ts";

/** What all in-tree eviction plugins are made of. */
export interface EvictionPluginParts {
  readings: HostReadings;
  memories: PodMemories;
  /** All pods of this node, candidates or not; undefined: the candidates of the round stand for all. */
  nodePods?: () => readonly ObservedPod[];
  clock: Clock;
  log: Logger;
  metrics: InTreeEvictionMetrics;
}

/** A way to a resource list, such as a CustomNodeResource's allocatable, with the time of its reading. */
export type ResourceListReader = (
  signal: AbortSignal,
) => Reading<Record<string, string>> | Promise<Reading<Record<string, string>>>;

/** Pods that have neither ended nor been told to end: as katalyst counts who is active. */
export function activePods(pods: readonly ObservedPod[]): ObservedPod[] {
  return pods.filter(
    ({ pod }) => pod.phase !== "Succeeded" && pod.phase !== "Failed" && pod.deletionTimestamp === null,
  );
}
