import type { ObservedPod } from "../../eviction/index.ts";
import { type Amounts, unitsOf } from "../../pod-usage/index.ts";

/** Thresholds for the requests of reclaimed pods, and their eviction. */
export interface ReclaimedResourceSettings {
  /** Ratio of requests to allocatable above which there is hard pressure, by resource; over 0. Others are not checked. */
  thresholds: Readonly<Record<string, number>>;
  /** The same for soft pressure; only useful below the hard threshold. */
  softThresholds: Readonly<Record<string, number>>;
  /** How long a threshold must be exceeded before there is pressure, seconds, 0 or more. */
  toleranceSeconds: number;
  /** Seconds, 1 or more; null for the grace period of the pod spec. */
  gracePeriodSeconds: number | null;
  /** Resources for which an allocatable quantity of 0 means unknown. */
  skipZeroResources: readonly string[];
}

/** An exceeded threshold, in units of the resource. */
export interface CrossedThreshold {
  metType: "hard" | "soft";
  resource: string;
  threshold: number;
  requested: number;
}

/**
 * The exceeded threshold to act on: a hard one before any soft one, regardless of the order of resources; of several, the
 * one exceeded by the largest factor. (katalyst uses the first in map iteration order.)
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
    for (const [resource, rate] of Object.entries(rates)) {
      const total = allocatable.get(resource);
      const amount = requested.get(resource) ?? 0n;
      if (total === undefined || (total <= 0n && settings.skipZeroResources.includes(resource))) continue;
      const threshold = rate * Math.max(0, unitsOf(total));
      if (unitsOf(amount) > threshold)
        crossed.push({ metType, resource, threshold, requested: unitsOf(amount) });
    }
    if (crossed.length > 0) break;
  }
  return crossed.sort(byFactor)[0];
}

/** A reclaimed pod with its request for the resource and its score, if it has one. */
export interface ScoredPod extends ObservedPod {
  requested: number;
  score: number | undefined;
}

/** Sorts pods in eviction order: lowest score first, pods without a score last; then largest request; then UID. */
export function rankByScore(pods: readonly ScoredPod[]): ScoredPod[] {
  const scoreOf = ({ score }: ScoredPod) => score ?? Number.MAX_VALUE;
  return [...pods].sort(
    (a, b) => scoreOf(a) - scoreOf(b) || b.requested - a.requested || (a.pod.uid < b.pod.uid ? -1 : 1),
  );
}

/** The first ranked pods whose eviction brings the requests down to the threshold; at least one. */
export function enoughFor(ranked: readonly ScoredPod[], requested: number, threshold: number): ScoredPod[] {
  const enough: ScoredPod[] = [];
  let left = requested;
  for (const pod of ranked) {
    if (enough.length > 0 && left <= threshold) break;
    enough.push(pod);
    left -= pod.requested;
  }
  return enough;
}

function byFactor(a: CrossedThreshold, b: CrossedThreshold): number {
  const factor = ({ requested, threshold }: CrossedThreshold) =>
    requested / Math.max(threshold, Number.MIN_VALUE);
  return factor(b) - factor(a) || (a.resource < b.resource ? -1 : 1);
}
