import type {
  EvictionSource,
  EvictPodAnswer,
  EvictPodsAnswer,
  ObservedPod,
  ThresholdAnswer,
  TopAnswer,
} from "../../eviction/index.ts";
import { noPods, noTopPods, notMet } from "./answers.ts";
import { MissingReadings } from "./missing-readings.ts";
import { RSS_OVERUSE } from "./names.ts";
import type { EvictionPluginParts } from "./parts.ts";
import type { PodMemory } from "./pod-memory.ts";
import { memoryRequest, WholePods } from "./pod-resources.ts";
import {
  hasLabels,
  MEMORY_ENHANCEMENT,
  overuseReason,
  type RssOveruseSettings,
  statedRate,
} from "./rss-overuse.ts";

/**
 * Names, as soft, the shared and reclaimed pods that hold more anonymous memory than they asked for, so that enough is
 * left for page cache. One of which a container has no memory request is left alone.
 */
export function rssOverusePlugin(
  parts: EvictionPluginParts,
  settings: () => RssOveruseSettings,
): EvictionSource {
  return new RssOveruse(parts, settings);
}

class RssOveruse implements EvictionSource {
  readonly name = RSS_OVERUSE;
  readonly #parts: EvictionPluginParts;
  readonly #settings: () => RssOveruseSettings;
  readonly #missing: MissingReadings;
  readonly #wholePods = new WholePods();

  constructor(parts: EvictionPluginParts, settings: () => RssOveruseSettings) {
    this.#parts = parts;
    this.#settings = settings;
    this.#missing = new MissingReadings(this.name, parts.log, parts.metrics);
  }

  async getEvictPods(pods: readonly ObservedPod[], signal: AbortSignal): Promise<EvictPodsAnswer> {
    const settings = this.#settings();
    const watched = pods.filter(
      ({ pod }) =>
        (pod.qosLevel === "shared_cores" || pod.qosLevel === "reclaimed_cores") &&
        hasLabels(pod.labels, settings.labels),
    );
    if (watched.length === 0) return noPods;
    const known = this.#missing.valueOf("podMemory", await this.#parts.memories.of(watched, signal));
    if (!known) return noPods;
    const named: EvictPodAnswer[] = [];
    for (const observed of watched) {
      const reason = this.#reasonFor(observed, known.get(observed.pod.uid), settings);
      if (reason === undefined) continue;
      named.push({ pod: observed.pod, reason, force: false, gracePeriodSeconds: null });
    }
    return { pods: named, condition: null };
  }

  async thresholdMet(): Promise<ThresholdAnswer> {
    return notMet;
  }

  async getTopEvictionPods(): Promise<TopAnswer> {
    return noTopPods;
  }

  #reasonFor(
    observed: ObservedPod,
    memory: PodMemory | undefined,
    { rateThreshold }: RssOveruseSettings,
  ): string | undefined {
    if (memory?.rssBytes === undefined) return undefined;
    const whole = this.#wholePods.of(observed);
    const stated = statedRate(whole.metadata?.annotations[MEMORY_ENHANCEMENT]);
    if (stated === "invalid") return undefined;
    return overuseReason(memory.rssBytes, memoryRequest(whole), stated ?? rateThreshold);
  }
}
