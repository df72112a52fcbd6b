import type { EvictionSettings } from "@nodekeeper/api/settings";
import { memoryRequest } from "../../pod-usage/index.ts";
import type { InTreePlugin } from "./in-tree-plugin.ts";
import { pairOf } from "./settings.ts";

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
