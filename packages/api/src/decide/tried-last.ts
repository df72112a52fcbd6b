import type { BudgetStatus } from "./outcome.ts";
import type { EvictionPod } from "./pods.ts";
import type { EvictionsUnderWay } from "./release.ts";

/** Pods that are tried last, by UID, with the budget that refused an eviction; null if none did. */
export type TriedLast = ReadonlyMap<string, BudgetStatus | null>;

// Labels that differ between the pods of one workload. Selectors of PodDisruptionBudgets do not use them.
const podLabels: ReadonlySet<string> = new Set([
  "apps.kubernetes.io/pod-index",
  "batch.kubernetes.io/job-completion-index",
  "controller-revision-hash",
  "pod-template-hash",
  "statefulset.kubernetes.io/pod-name",
]);

/**
 * Returns the candidates that are tried only if no other can be evicted: those whose eviction failed recently, and
 * those selected by the same PodDisruptionBudget, which are the pods with the same namespace and labels. Otherwise many
 * protected pods would be tried in turn, each after its pause, and an unprotected pod never. Pure.
 */
export function triedLast(
  candidates: readonly EvictionPod[],
  { paused, failedBefore }: Pick<EvictionsUnderWay, "paused" | "failedBefore">,
): TriedLast {
  const failed = new Map([...failedBefore, ...paused].map((pod) => [pod.uid, pod.budget]));
  if (failed.size === 0) return failed;
  const budgets = new Map<string, BudgetStatus>();
  for (const pod of candidates) {
    const budget = failed.get(pod.uid);
    if (budget) budgets.set(workloadKey(pod), budget);
  }
  const last = new Map<string, BudgetStatus | null>();
  for (const pod of candidates) {
    const budget = failed.get(pod.uid) ?? (budgets.size > 0 ? budgets.get(workloadKey(pod)) : undefined);
    if (budget !== undefined || failed.has(pod.uid)) last.set(pod.uid, budget ?? null);
  }
  return last;
}

// Returns a key that is equal for pods selected by the same PodDisruptionBudget.
function workloadKey({ namespace, labels }: EvictionPod): string {
  const selectable = Object.entries(labels).filter(([name]) => !podLabels.has(name));
  return JSON.stringify([namespace, ...selectable.sort(([a], [b]) => (a < b ? -1 : 1))]);
}
