import { type EvictPodAnswer, type EvictPodsAnswer, noPods, type ObservedPod } from "../../eviction/index.ts";
import type { PodMemory } from "../../pod-usage/index.ts";
import { memoryRequest } from "../../pod-usage/index.ts";
import type { InTreeAnswers, InTreePlugin, InTreePluginContext } from "./in-tree-plugin.ts";
import {
  hasLabels,
  MEMORY_ENHANCEMENT,
  overuseReason,
  type RssOveruseSettings,
  statedRate,
} from "./rss-overuse.ts";

/**
 * Selects, as soft evictions, shared and reclaimed pods whose RSS exceeds their memory requests, so that enough memory is
 * left for page cache. Pods with a container without a memory request are skipped. After katalyst-core
 * plugin/memory/rss_overuse.go. Using more than requested may be legitimate, so the plugin is disabled by default.
 */
export const rssOveruse: InTreePlugin<RssOveruseSettings> = {
  name: "rss-overuse-eviction-plugin",
  onByDefault: false,
  answers: (context) => new RssOveruse(context),
};

class RssOveruse implements InTreeAnswers {
  readonly #context: InTreePluginContext<RssOveruseSettings>;

  constructor(context: InTreePluginContext<RssOveruseSettings>) {
    this.#context = context;
  }

  async getEvictPods(pods: readonly ObservedPod[], signal: AbortSignal): Promise<EvictPodsAnswer> {
    const { parts, missing } = this.#context;
    const settings = this.#context.settings();
    const watched = pods.filter(
      ({ pod }) =>
        (pod.qosLevel === "shared_cores" || pod.qosLevel === "reclaimed_cores") &&
        hasLabels(pod.labels, settings.labels),
    );
    if (watched.length === 0) return noPods;
    const known = missing.valueOf("podMemory", await parts.memories.of(watched, signal));
    if (!known) return noPods;
    const named: EvictPodAnswer[] = [];
    for (const observed of watched) {
      const reason = this.#reasonFor(observed, known.get(observed.pod.uid), settings);
      if (reason === undefined) continue;
      named.push({ pod: observed.pod, reason, force: false, gracePeriodSeconds: null });
    }
    return { pods: named, condition: null };
  }

  #reasonFor(
    observed: ObservedPod,
    memory: PodMemory | undefined,
    { rateThreshold }: RssOveruseSettings,
  ): string | undefined {
    if (memory?.rssBytes === undefined) return undefined;
    const { details } = observed;
    const stated = statedRate(details.metadata?.annotations[MEMORY_ENHANCEMENT]);
    if (stated === "invalid") return undefined;
    return overuseReason(memory.rssBytes, memoryRequest(details), stated ?? rateThreshold);
  }
}
