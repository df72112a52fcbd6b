import type {
  EvictionSource,
  EvictPodsAnswer,
  ObservedPod,
  ThresholdAnswer,
  TopAnswer,
  TopQuestion,
} from "../../eviction/index.ts";
import { freshReading } from "../../host/index.ts";
import { noPods, noTopPods, notMet } from "./answers.ts";
import { MissingReadings } from "./missing-readings.ts";
import { RECLAIMED_RESOURCE_PRESSURE } from "./names.ts";
import { activePods, type EvictionPluginParts, type ResourceListReader } from "./parts.ts";
import { type Amounts, amountsOf, podRequests, sum, unitsOf, WholePods } from "./pod-resources.ts";
import {
  type CrossedThreshold,
  crossedThreshold,
  enoughFor,
  type ReclaimedResourceSettings,
  rankByScore,
  type ScoredPod,
} from "./reclaimed-resources.ts";
import { isReclaimed } from "./severity.ts";

// What was allocatable longer ago is no ground to evict anybody, milliseconds.
const LONGEST_AGE_MS = 5 * 60_000;

export interface ReclaimedResourceOptions {
  /** What the CustomNodeResource of this node says is allocatable. */
  allocatable: ResourceListReader;
  /** How dear a pod is; undefined: not told. Default: nobody is told. */
  scoreOf?: (pod: ObservedPod) => number | undefined;
}

/** Evicts reclaimed pods when together they ask for more than was lent to them. */
export function reclaimedResourcePressurePlugin(
  parts: Omit<EvictionPluginParts, "readings" | "memories">,
  settings: () => ReclaimedResourceSettings,
  options: ReclaimedResourceOptions,
): EvictionSource {
  return new ReclaimedResourcePressure(parts, settings, options);
}

class ReclaimedResourcePressure implements EvictionSource {
  readonly name = RECLAIMED_RESOURCE_PRESSURE;
  readonly #parts: Omit<EvictionPluginParts, "readings" | "memories">;
  readonly #settings: () => ReclaimedResourceSettings;
  readonly #options: ReclaimedResourceOptions;
  readonly #missing: MissingReadings;
  readonly #wholePods = new WholePods();
  #requests = new WeakMap<Uint8Array, Amounts>();
  #crossed: CrossedThreshold | undefined;

  constructor(
    parts: Omit<EvictionPluginParts, "readings" | "memories">,
    settings: () => ReclaimedResourceSettings,
    options: ReclaimedResourceOptions,
  ) {
    this.#parts = parts;
    this.#settings = settings;
    this.#options = options;
    this.#missing = new MissingReadings(this.name, parts.log, parts.metrics);
  }

  async getEvictPods(): Promise<EvictPodsAnswer> {
    return noPods;
  }

  async thresholdMet(pods: readonly ObservedPod[], signal: AbortSignal): Promise<ThresholdAnswer> {
    const settings = this.#settings();
    this.#crossed = undefined;
    const reclaimed = activePods(this.#parts.nodePods?.() ?? pods).filter(isReclaimed);
    if (reclaimed.length === 0) return notMet;
    const reading = await this.#options.allocatable(signal);
    const fresh = freshReading(reading, this.#parts.clock.now(), LONGEST_AGE_MS);
    const allocatable = this.#missing.valueOf("allocatable", fresh);
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
      gracePeriodSeconds: settings.toleranceSeconds,
    };
  }

  async getTopEvictionPods(pods: readonly ObservedPod[], { topN, scope }: TopQuestion): Promise<TopAnswer> {
    const crossed = this.#crossed;
    if (!crossed || crossed.resource !== scope) return noTopPods;
    const scored = pods
      .filter(isReclaimed)
      .map((pod) => this.#scored(pod, scope))
      // The end of a pod that asks for none of it helps nobody.
      .filter(({ requested }) => requested > 0);
    const ranked = rankByScore(scored);
    const victims =
      crossed.metType === "hard"
        ? ranked.slice(0, topN)
        : enoughFor(ranked, crossed.requested, crossed.threshold);
    const { gracePeriodSeconds } = this.#settings();
    return { pods: victims.map(({ pod }) => pod), gracePeriodSeconds };
  }

  #scored(pod: ObservedPod, resource: string): ScoredPod {
    const requested = unitsOf(this.#requestsOf(pod).get(resource) ?? 0n);
    return { ...pod, requested, score: this.#options.scoreOf?.(pod) };
  }

  #requestsOf(pod: ObservedPod): Amounts {
    const known = this.#requests.get(pod.bytes);
    if (known) return known;
    const requests = podRequests(this.#wholePods.of(pod));
    this.#requests.set(pod.bytes, requests);
    return requests;
  }
}
