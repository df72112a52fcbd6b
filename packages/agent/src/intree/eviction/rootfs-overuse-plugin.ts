import { type EvictPodsAnswer, noPods, type ObservedPod } from "../../eviction/index.ts";
import type { InTreeAnswers, InTreePlugin } from "./in-tree-plugin.ts";
import { victimOrder } from "./victim-order.ts";

/** Thresholds for the use of a pod's writable layers. */
export interface RootfsOveruseSettings {
  /** Bytes above which a shared pod is selected; 0: never. */
  sharedThresholdBytes: number;
  /** The same for reclaimed pods. */
  reclaimedThresholdBytes: number;
  /** Namespaces whose shared pods are checked; empty: all. */
  sharedNamespaces: readonly string[];
  /** Maximum number of pods selected in one round, 1 or more. */
  mostPods: number;
  /** Seconds; null for the grace period of the pod spec. */
  gracePeriodSeconds: number | null;
}

/**
 * Selects, as soft evictions, shared and reclaimed pods whose writable layers exceed a threshold, whether or not there is
 * disk pressure. After katalyst-core plugin/rootfs/rootfs_overuse.go. Inactive until a threshold is set.
 */
export const rootfsOveruse: InTreePlugin<RootfsOveruseSettings> = {
  name: "rootfs-overuse-eviction-plugin",
  onByDefault: false,
  answers: ({ parts, settings, missing }): InTreeAnswers => ({
    async getEvictPods(pods, signal): Promise<EvictPodsAnswer> {
      const current = settings();
      const watched = pods.filter((pod) => thresholdOf(pod, current) > 0);
      if (watched.length === 0) return noPods;
      const disks = missing.valueOf("podDisk", await parts.disks.all(signal));
      if (!disks) return noPods;
      const usedBy = ({ pod }: ObservedPod) => disks.get(pod.uid)?.bytes;
      const over = watched.filter((pod) => (usedBy(pod) ?? 0) > thresholdOf(pod, current));
      const named = victimOrder(over, (pod) => [usedBy(pod)]).slice(0, current.mostPods);
      return {
        pods: named.map((observed) => ({
          pod: observed.pod,
          reason: `writable layers use ${usedBy(observed)} bytes > threshold ${thresholdOf(observed, current)}`,
          force: false,
          gracePeriodSeconds: current.gracePeriodSeconds,
        })),
        condition: null,
      };
    },
  }),
};

// 0: the pod is not checked.
function thresholdOf({ pod }: ObservedPod, settings: RootfsOveruseSettings): number {
  const { sharedThresholdBytes, reclaimedThresholdBytes, sharedNamespaces } = settings;
  if (pod.qosLevel === "reclaimed_cores") return reclaimedThresholdBytes;
  if (pod.qosLevel !== "shared_cores") return 0;
  const isWatched = sharedNamespaces.length === 0 || sharedNamespaces.includes(pod.namespace);
  return isWatched ? sharedThresholdBytes : 0;
}
