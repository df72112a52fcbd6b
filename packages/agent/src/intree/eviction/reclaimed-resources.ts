import type { EvictionSettings } from "@nodekeeper/api/settings";
import type { ObservedPod, PodDetails } from "../../eviction/index.ts";
import { freshReading } from "../../host/index.ts";
import { type Amounts, amountsOf, podRequests, sum, unitsOf } from "../../pod-usage/index.ts";
import type { InTreePlugin } from "./in-tree-plugin.ts";
import { graceSeconds, pairOf } from "./settings.ts";
import { activePods, isReclaimed, victimOrder } from "./victims.ts";

// Maximum age of the allocatable resources on which evictions are based, milliseconds.
const MAX_AGE_MS = 5 * 60_000;

export type ReclaimedResourceSettings = EvictionSettings["reclaimedResources"];

/** An exceeded threshold, in units of the resource. */
export interface CrossedThreshold {
  metType: "hard" | "soft";
  resource: string;
  threshold: number;
  requested: number;
}

/**
 * Returns the exceeded threshold to act on: a hard one before any soft one, regardless of the order of resources; of
 * several, the one exceeded by the largest factor. (katalyst uses the first in map iteration order.)
 */
export function crossedThreshold(
  requested: Amounts,
  allocatable: Amounts,
  settings: ReclaimedResourceSettings,
): CrossedThreshold | undefined {
  const crossed: CrossedThreshold[] = [];
  for (const [metType, rates] of [
    ["hard", settings.thresholds],
    ["soft", settings.softThresholds],
  ] as const) {
    for (const [resource, rate] of new Map(rates.map(pairOf))) {
      const total = allocatable.get(resource);
      const amount = requested.get(resource) ?? 0n;
      if (total === undefined || (total <= 0n && settings.skipZeroResources.includes(resource))) continue;
      const threshold = Number(rate) * Math.max(0, unitsOf(total));
      if (unitsOf(amount) > threshold)
        crossed.push({ metType, resource, threshold, requested: unitsOf(amount) });
    }
    if (crossed.length > 0) break;
  }
  return crossed.sort(byFactor)[0];
}

/** A reclaimed pod with its request for the resource. */
interface RequestingPod extends ObservedPod {
  requested: number;
}

/** Returns the first ranked pods whose eviction reduces the requests to the threshold; at least one. */
export function enoughFor(
  ranked: readonly RequestingPod[],
  requested: number,
  threshold: number,
): RequestingPod[] {
  const enough: RequestingPod[] = [];
  let left = requested;
  for (const pod of ranked) {
    if (enough.length > 0 && left <= threshold) break;
    enough.push(pod);
    left -= pod.requested;
  }
  return enough;
}

/**
 * Evicts reclaimed pods if their total requests exceed the resources allocatable to them. Based on katalyst-core
 * pkg/agent/evictionmanager/plugin/resource.
 */
export const reclaimedResourcePressure: InTreePlugin<ReclaimedResourceSettings> = {
  name: "reclaimed-resource-pressure-eviction-plugin",
  pressure({ nodePods, allocatable, clock, settings, valueIn }) {
    const requestsOf = rememberedRequests();
    return {
      async observe(pods, signal) {
        const reclaimed = activePods(nodePods?.() ?? pods).filter(isReclaimed);
        if (reclaimed.length === 0) return {};
        const fresh = freshReading(await allocatable(signal), clock.monotonic(), MAX_AGE_MS);
        const known = valueIn("allocatable", fresh);
        if (!known) return {};
        const requested = reclaimed.map(requestsOf).reduce(sum);
        const crossed = crossedThreshold(requested, amountsOf(known), settings());
        if (!crossed) return {};
        const { metType, resource: scope, threshold: thresholdValue, requested: observedValue } = crossed;
        const unit = scope.endsWith("memory") ? { unit: "bytes" } : {};
        return {
          values: { scope, thresholdValue, observedValue, ...unit },
          metType,
          graceSeconds: Math.round(settings().tolerance / 1000),
          pressure: crossed,
        };
      },
      async victims(pods, { resource, metType, requested, threshold }: CrossedThreshold, { topN, scope }) {
        if (resource !== scope) return undefined;
        const requesting = pods
          .filter(isReclaimed)
          .map((pod) => ({ ...pod, requested: unitsOf(requestsOf(pod).get(scope) ?? 0n) }))
          // Evicting a pod without a request for the resource would not help.
          .filter((pod) => pod.requested > 0);
        const ranked = victimOrder(requesting, (pod) => [pod.requested]);
        const victims = metType === "hard" ? ranked.slice(0, topN) : enoughFor(ranked, requested, threshold);
        return { pods: victims, gracePeriodSeconds: graceSeconds(settings().gracePeriod) };
      },
    };
  },
};

// The requests of an observed pod do not change.
function rememberedRequests(): (pod: ObservedPod) => Amounts {
  const known = new WeakMap<PodDetails, Amounts>();
  return ({ details }) => {
    const requests = known.get(details) ?? podRequests(details);
    known.set(details, requests);
    return requests;
  };
}

function byFactor(a: CrossedThreshold, b: CrossedThreshold): number {
  const factor = ({ requested, threshold }: CrossedThreshold) =>
    requested / Math.max(threshold, Number.MIN_VALUE);
  return factor(b) - factor(a) || (a.resource < b.resource ? -1 : 1);
}
