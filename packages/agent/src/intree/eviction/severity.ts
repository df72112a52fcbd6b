import type { ObservedPod } from "../../eviction/index.ts";

/** Whose memory is taken: nobody's, that of reclaimed pods, which were lent what others left over, or anybody's. */
export type Severity = "none" | "reclaimed" | "all";

const order: Readonly<Record<Severity, number>> = { none: 0, reclaimed: 1, all: 2 };

export function worseOf(a: Severity, b: Severity): Severity {
  return order[a] >= order[b] ? a : b;
}

/** The pods that may have to go. */
export function podsAtRisk(pods: readonly ObservedPod[], severity: Severity): readonly ObservedPod[] {
  if (severity === "none") return [];
  return severity === "all" ? pods : pods.filter(isReclaimed);
}

export function isReclaimed({ pod }: ObservedPod): boolean {
  return pod.qosLevel === "reclaimed_cores";
}

/** Grace periods of victims of memory pressure, seconds; null is each pod's own. */
export interface MemoryGrace {
  /** Of anybody, once all pods are at risk. */
  gracePeriodSeconds: number | null;
  /** While only reclaimed pods are at risk. */
  reclaimedGracePeriodSeconds: number | null;
}

export function graceFor(severity: Severity, grace: MemoryGrace): number | null {
  return severity === "reclaimed" ? grace.reclaimedGracePeriodSeconds : grace.gracePeriodSeconds;
}
