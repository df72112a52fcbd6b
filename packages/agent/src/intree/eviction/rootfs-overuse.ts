import type { EvictionSettings } from "@nodekeeper/api/settings";
import type { ObservedPod } from "../../eviction/index.ts";
import type { InTreePlugin } from "./in-tree-plugin.ts";
import { graceSeconds } from "./settings.ts";
import { victimOrder } from "./victims.ts";

export type RootfsOveruseSettings = EvictionSettings["rootfsOveruse"];

/**
 * Requests soft eviction of shared and reclaimed pods whose writable layers exceed a threshold, with or without disk
 * pressure. Based on katalyst-core plugin/rootfs/rootfs_overuse.go. Inactive until a threshold is set.
 */
export const rootfsOveruse: InTreePlugin<RootfsOveruseSettings> = {
  name: "rootfs-overuse-eviction-plugin",
  onByDefault: false,
  overuse:
    ({ disks, settings, valueIn }) =>
    async (pods, signal) => {
      const current = settings();
      const watched = pods.filter((pod) => thresholdOf(pod, current) > 0);
      if (watched.length === 0) return [];
      const known = valueIn("podDisk", await disks.all(signal));
      if (!known) return undefined;
      const usedBy = ({ pod }: ObservedPod) => known.get(pod.uid)?.bytes;
      const over = watched.filter((pod) => (usedBy(pod) ?? 0) > thresholdOf(pod, current));
      const named = victimOrder(over, (pod) => [usedBy(pod)]).slice(0, current.mostPods);
      return named.map((observed) => ({
        pod: observed.pod,
        reason: `writable layers use ${usedBy(observed)} bytes > threshold ${thresholdOf(observed, current)}`,
        force: false,
        gracePeriodSeconds: graceSeconds(current.gracePeriod),
      }));
    },
};

// Returns the threshold of a pod, bytes; 0 if the pod is not checked.
function thresholdOf({ pod }: ObservedPod, settings: RootfsOveruseSettings): number {
  const { sharedThreshold, reclaimedThreshold, sharedNamespaces } = settings;
  if (pod.qosLevel === "reclaimed_cores") return reclaimedThreshold;
  if (pod.qosLevel !== "shared_cores") return 0;
  const isWatched = sharedNamespaces.length === 0 || sharedNamespaces.includes(pod.namespace);
  return isWatched ? sharedThreshold : 0;
}
