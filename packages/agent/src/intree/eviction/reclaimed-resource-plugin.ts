import {
  noTopPods,
  notMet,
  type ObservedPod,
  type PodDetails,
  type ThresholdAnswer,
  type TopAnswer,
  type TopQuestion,
} from "../../eviction/index.ts";
import { freshReading } from "../../host/index.ts";
import { type Amounts, amountsOf, podRequests, sum, unitsOf } from "../../pod-usage/index.ts";
import type { InTreeAnswers, InTreePlugin, InTreePluginContext } from "./in-tree-plugin.ts";
import { activePods } from "./parts.ts";
import {
  type CrossedThreshold,
  crossedThreshold,
  enoughFor,
  type ReclaimedResourceSettings,
  rankByScore,
  type ScoredPod,
} from "./reclaimed-resources.ts";
import { isReclaimed } from "./severity.ts";

// Maximum age of the allocatable resources on which evictions are based.
const MAX_AGE_MS = 5 * 60_000;

/**
 * Evicts reclaimed pods if their total requests exceed what is allocatable to them. After katalyst-core
 * pkg/agent/evictionmanager/plugin/resource.
 */
export const reclaimedResourcePressure: InTreePlugin<ReclaimedResourceSettings> = {
  name: "reclaimed-resource-pressure-eviction-plugin",
  answers: (context) => new ReclaimedResourcePressure(context),
};

class ReclaimedResourcePressure implements InTreeAnswers {
  readonly #context: InTreePluginContext<ReclaimedResourceSettings>;
  #requests = new WeakMap<PodDetails, Amounts>();
  #crossed: CrossedThreshold | undefined;

  constructor(context: InTreePluginContext<ReclaimedResourceSettings>) {
    this.#context = context;
  }

  async thresholdMet(pods: readonly ObservedPod[], signal: AbortSignal): Promise<ThresholdAnswer> {
    const { parts, missing } = this.#context;
    const settings = this.#context.settings();
    this.#crossed = undefined;
    const reclaimed = activePods(parts.nodePods?.() ?? pods).filter(isReclaimed);
    if (reclaimed.length === 0) return notMet;
    const reading = await parts.allocatable(signal);
    const fresh = freshReading(reading, parts.clock.monotonic(), MAX_AGE_MS);
    const allocatable = missing.valueOf("allocatable", fresh);
    if (!allocatable) return notMet;
    const requested = reclaimed.map((pod) => this.#requestsOf(pod)).reduce(sum);
    this.#crossed = crossedThreshold(requested, amountsOf(allocatable), settings);
    if (!this.#crossed) return notMet;
    const { metType, resource, threshold } = this.#crossed;
    return {
      ...notMet,
      metType,
      scope: resource,
      thresholdValue: threshold,
      observedValue: this.#crossed.requested,
      ...(resource.endsWith("memory") ? { unit: "bytes" } : {}),
      gracePeriodSeconds: settings.toleranceSeconds,
    };
  }

  async getTopEvictionPods(pods: readonly ObservedPod[], { topN, scope }: TopQuestion): Promise<TopAnswer> {
    const crossed = this.#crossed;
    if (!crossed || crossed.resource !== scope) return noTopPods;
    const scored = pods
      .filter(isReclaimed)
      .map((pod) => this.#scored(pod, scope))
      // Evicting a pod that requests none of the resource would not help.
      .filter(({ requested }) => requested > 0);
    const ranked = rankByScore(scored);
    const victims =
      crossed.metType === "hard"
        ? ranked.slice(0, topN)
        : enoughFor(ranked, crossed.requested, crossed.threshold);
    const { gracePeriodSeconds } = this.#context.settings();
    return { pods: victims.map(({ pod }) => pod), gracePeriodSeconds };
  }

  #scored(pod: ObservedPod, resource: string): ScoredPod {
    const requested = unitsOf(this.#requestsOf(pod).get(resource) ?? 0n);
    return { ...pod, requested, score: this.#context.parts.scoreOf?.(pod) };
  }

  #requestsOf(pod: ObservedPod): Amounts {
    const known = this.#requests.get(pod.details);
    if (known) return known;
    const requests = podRequests(pod.details);
    this.#requests.set(pod.details, requests);
    return requests;
  }
}
