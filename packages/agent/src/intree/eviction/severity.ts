import type { ObservedPod } from "../../eviction/index.ts";

/** Which pods are candidates: none, reclaimed pods, or all. */
export type Severity = "none" | "reclaimed" | "all";

const order: Readonly<Record<Severity, number>> = { none: 0, reclaimed: 1, all: 2 };

export function worseOf(a: Severity, b: Severity): Severity {
  return order[a] >= order[b] ? a : b;
}

/** The candidate pods for a severity. */
export function candidatesFor(pods: readonly ObservedPod[], severity: Severity): readonly ObservedPod[] {
  if (severity === "none") return [];
  return severity === "all" ? pods : pods.filter(isReclaimed);
}

export function isReclaimed({ pod }: ObservedPod): boolean {
  return pod.qosLevel === "reclaimed_cores";
}

/** Grace periods of victims of memory pressure, seconds; null for the grace period of the pod spec. */
export interface MemoryGrace {
  /** Used while all pods are candidates. */
  gracePeriodSeconds: number | null;
  /** Used while only reclaimed pods are candidates. */
  reclaimedGracePeriodSeconds: number | null;
}

export function graceFor(severity: Severity, grace: MemoryGrace): number | null {
  return severity === "reclaimed" ? grace.reclaimedGracePeriodSeconds : grace.gracePeriodSeconds;
}
