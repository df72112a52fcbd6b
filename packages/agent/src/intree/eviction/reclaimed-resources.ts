import type { ObservedPod } from "../../eviction/index.ts";
import { type Amounts, unitsOf } from "../../pod-usage/index.ts";

/** When reclaimed pods ask for more than there is to lend, and how they go then. */
export interface ReclaimedResourceSettings {
  /** By resource: requests above so many times what is allocatable are hard pressure; over 0. Others are not looked at. */
  thresholds: Readonly<Record<string, number>>;
  /** The same for soft pressure; below the hard one to be of use. */
  softThresholds: Readonly<Record<string, number>>;
  /** Pressure counts once it has lasted so long, seconds, 0 or more. */
  toleranceSeconds: number;
  /** Seconds, 1 or more; null is each pod's own. */
  gracePeriodSeconds: number | null;
  /** Resources for which an allocatable of 0 means that nothing is known rather than that nothing is left. */
  skipZeroResources: readonly string[];
}

export const defaultReclaimedResourceSettings: Readonly<ReclaimedResourceSettings> = {
  thresholds: {
    "resource.katalyst.kubewharf.io/reclaimed_millicpu": 5,
    "resource.katalyst.kubewharf.io/reclaimed_memory": 5,
  },
  softThresholds: {},
  toleranceSeconds: 0,
  gracePeriodSeconds: 60,
  skipZeroResources: [],
};

/** A threshold that is crossed, in units of the resource. */
export interface CrossedThreshold {
  metType: "hard" | "soft";
  resource: string;
  threshold: number;
  requested: number;
}

/**
 * The threshold to act on: a hard one before any soft one, whatever the order of resources, and of several the one
 * that is crossed by the largest factor. (katalyst takes the first that a map happens to give.)
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

/** A reclaimed pod with what it asks for of the resource in question, and its score where somebody gives it one. */
export interface ScoredPod extends ObservedPod {
  requested: number;
  score: number | undefined;
}

/** The order in which pods go: the lowest score first, those without one last; then the largest request; then by UID. */
export function rankByScore(pods: readonly ScoredPod[]): ScoredPod[] {
  const scoreOf = ({ score }: ScoredPod) => score ?? Number.MAX_VALUE;
  return [...pods].sort(
    (a, b) => scoreOf(a) - scoreOf(b) || b.requested - a.requested || (a.pod.uid < b.pod.uid ? -1 : 1),
  );
}

/** So many of the ranked pods as bring the requests down to the threshold; one at least. */
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
