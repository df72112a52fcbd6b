import type { Clock, Logger } from "@nodekeeper/core/lib";
import type { ObservedPod } from "../../eviction/index.ts";
import type { HostReadings, Reading } from "../../host/index.ts";
import type { PodDisks, PodMemories } from "../../pod-usage/index.ts";
import type { InTreeEvictionMetrics } from "./missing-readings.ts";

/** What all in-tree eviction plugins are made of. */
export interface EvictionPluginParts {
  readings: HostReadings;
  memories: PodMemories;
  disks: Pick<PodDisks, "all">;
  /** Where the runtime keeps writable layers. Rejects with why that is not known. */
  rootfsPath: (signal: AbortSignal) => Promise<string>;
  /** All pods of this node, candidates or not; undefined: the candidates of the round stand for all. */
  nodePods?: () => readonly ObservedPod[];
  /** What the CustomNodeResource of this node says is allocatable. */
  allocatable: ResourceListReader;
  /** How dear a pod is; undefined: not known. Default: of no pod. */
  scoreOf?: (pod: ObservedPod) => number | undefined;
  /** From one regular round to the next, milliseconds. */
  roundPeriodMs: () => number;
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
