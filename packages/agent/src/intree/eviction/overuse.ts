import type { EvictionSettings } from "@nodekeeper/api/settings";
import type { ObservedPod } from "../../eviction/index.ts";
import { memoryRequest } from "../../pod-usage/index.ts";
import type { InTreePlugin } from "./in-tree-plugin.ts";
import { graceSeconds, pairOf } from "./settings.ts";
import { victimOrder } from "./victims.ts";

// The plugins that name pods regardless of pressure.

export type PidOveruseSettings = EvictionSettings["pidOveruse"];

/**
 * Requests hard eviction of pods with more processes and threads than the threshold, because all pods share the
 * machine's PIDs. Based on katalyst-core plugin/cpu/pid_overuse.go. Inactive until a threshold is set.
 */
export const pidOveruse: InTreePlugin<PidOveruseSettings> = {
  name: "pid-overuse-eviction-plugin",
  onByDefault: false,
  overuse:
    ({ readings, settings, valueIn }) =>
    async (pods, signal) => {
      const { threshold, gracePeriod } = settings();
      if (threshold === 0) return [];
      const activity = valueIn("podPids", await readings.podActivity(signal));
      if (!activity) return undefined;
      const pidsOf = ({ pod }: ObservedPod) => activity.get(pod.uid)?.pids;
      const over = pods.filter((pod) => (pidsOf(pod) ?? 0) > threshold);
      return victimOrder(over, (pod) => [pidsOf(pod)]).map((observed) => ({
        pod: observed.pod,
        reason: `${pidsOf(observed)} processes and threads > threshold ${threshold}`,
        force: true,
        gracePeriodSeconds: graceSeconds(gracePeriod),
      }));
    },
};

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

export type RssOveruseSettings = EvictionSettings["rssOveruse"];

/** katalyst's annotation for memory settings of a pod; JSON. */
export const MEMORY_ENHANCEMENT = "katalyst.kubewharf.io/memory_enhancement";
const OVERUSE_KEY = "rss_overuse_threshold";
// Longer annotations are not parsed, characters.
const MAX_ANNOTATION_LENGTH = 4096;

/**
 * Requests soft eviction of shared and reclaimed pods whose RSS exceeds their memory requests, so that enough memory is
 * left for page cache. Pods with a container without a memory request are skipped. Based on katalyst-core
 * plugin/memory/rss_overuse.go. Disabled by default, because a pod may legitimately use more than it requests.
 */
export const rssOveruse: InTreePlugin<RssOveruseSettings> = {
  name: "rss-overuse-eviction-plugin",
  onByDefault: false,
  overuse:
    ({ memories, settings, valueIn }) =>
    async (pods, signal) => {
      const { labels, rateThreshold } = settings();
      const watched = pods.filter(
        ({ pod }) =>
          (pod.qosLevel === "shared_cores" || pod.qosLevel === "reclaimed_cores") &&
          [...new Map(labels.map(pairOf))].every(([name, value]) => pod.labels[name] === value),
      );
      if (watched.length === 0) return [];
      const known = valueIn("podMemory", await memories.of(watched, signal));
      return (
        known &&
        watched.flatMap(({ pod, details }) => {
          const stated = statedRate(details.metadata?.annotations[MEMORY_ENHANCEMENT]);
          if (stated === "invalid") return [];
          const rssBytes = known.get(pod.uid)?.rssBytes;
          const reason = overuseReason(rssBytes, memoryRequest(details), stated ?? rateThreshold);
          return reason === undefined ? [] : [{ pod, reason, force: false, gracePeriodSeconds: null }];
        })
      );
    },
};

/**
 * Returns the ratio in a pod's annotation, for example {"rss_overuse_threshold":"0.8"}. `invalid` if it is malformed:
 * such a pod is skipped, because its author did not intend the default.
 */
export function statedRate(annotation: string | undefined): number | undefined | "invalid" {
  if (annotation === undefined) return undefined;
  if (annotation.length > MAX_ANNOTATION_LENGTH) return "invalid";
  let settings: unknown;
  try {
    settings = JSON.parse(annotation);
  } catch {
    return "invalid";
  }
  if (typeof settings !== "object" || settings === null) return "invalid";
  const stated = (settings as Record<string, unknown>)[OVERUSE_KEY];
  if (stated === undefined) return undefined;
  // A number, or a number as a string. "150%" and "" are invalid.
  const isText = typeof stated === "string" && /^\d{1,9}(?:\.\d{1,9})?$/.test(stated);
  const rate = isText ? Number(stated) : stated;
  return typeof rate === "number" && Number.isFinite(rate) && rate > 0 ? rate : "invalid";
}

/** Returns the reason to evict a pod for its RSS; undefined if the threshold is not exceeded or a value is unknown. */
export function overuseReason(
  rssBytes: number | undefined,
  requestBytes: number | undefined,
  rate: number,
): string | undefined {
  if (rssBytes === undefined || requestBytes === undefined || !(rssBytes > rate * requestBytes))
    return undefined;
  const times = (rssBytes / requestBytes).toFixed(2);
  return `RSS of ${mebibytes(rssBytes)} is ${times} times the memory requests of ${mebibytes(requestBytes)} > threshold ${rate}`;
}

function mebibytes(bytes: number): string {
  return `${Math.round(bytes / 2 ** 20)}Mi`;
}
