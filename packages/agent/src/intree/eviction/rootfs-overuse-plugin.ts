import { type EvictPodsAnswer, noPods, type ObservedPod } from "../../eviction/index.ts";
import type { InTreeAnswers, InTreePlugin } from "./in-tree-plugin.ts";
import { victimOrder } from "./victim-order.ts";

/** When a pod has too much in its writable layers. */
export interface RootfsOveruseSettings {
  /** Shared pods with more are named, bytes; 0: none. */
  sharedThresholdBytes: number;
  /** The same for reclaimed pods. */
  reclaimedThresholdBytes: number;
  /** Only shared pods of these namespaces are looked at; of all where there are none. */
  sharedNamespaces: readonly string[];
  /** Pods named in one round, 1 or more. */
  mostPods: number;
  /** Seconds; null is each pod's own. */
  gracePeriodSeconds: number | null;
}

export const defaultRootfsOveruseSettings: Readonly<RootfsOveruseSettings> = {
  sharedThresholdBytes: 0,
  reclaimedThresholdBytes: 0,
  sharedNamespaces: [],
  mostPods: 1,
  gracePeriodSeconds: null,
};

/**
 * Names, as soft, the shared and reclaimed pods that have more in their writable layers than they may, whether the disk
 * is short or not. After katalyst's plugin/rootfs/rootfs_overuse.go. No pod is named before a threshold is set.
 */
export const rootfsOveruse: InTreePlugin<RootfsOveruseSettings> = {
  name: "rootfs-overuse-eviction-plugin",
  onByDefault: false,
  defaults: defaultRootfsOveruseSettings,
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
          reason: `its writable layers have ${usedBy(observed)} bytes, above ${thresholdOf(observed, current)}`,
          force: false,
          gracePeriodSeconds: current.gracePeriodSeconds,
        })),
        condition: null,
      };
    },
  }),
};

// 0: the pod is not looked at.
function thresholdOf({ pod }: ObservedPod, settings: RootfsOveruseSettings): number {
  const { sharedThresholdBytes, reclaimedThresholdBytes, sharedNamespaces } = settings;
  if (pod.qosLevel === "reclaimed_cores") return reclaimedThresholdBytes;
  if (pod.qosLevel !== "shared_cores") return 0;
  const isWatched = sharedNamespaces.length === 0 || sharedNamespaces.includes(pod.namespace);
  return isWatched ? sharedThresholdBytes : 0;
}
