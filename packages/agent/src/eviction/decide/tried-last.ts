import type { EvictionPod } from "./pods.ts";
import type { EvictionsUnderWay } from "./release.ts";
import type { BudgetStatus } from "./state.ts";

/** What holds for pods that are tried after all others: the budget that forbade an eviction, null where none did. */
export type TriedLast = ReadonlyMap<string, BudgetStatus | null>;

/** Why such a pod is not tried now. */
export const triedLastText =
  "its eviction, or that of a pod with the same disruption budget, failed a short while ago, and others are tried first";

// Labels that differ between the pods of one workload. A disruption budget selects by the others.
const podLabels: ReadonlySet<string> = new Set([
  "apps.kubernetes.io/pod-index",
  "batch.kubernetes.io/job-completion-index",
  "controller-revision-hash",
  "pod-template-hash",
  "statefulset.kubernetes.io/pod-name",
]);

/**
 * Candidates that are tried only when no other can be, by UID: those whose own eviction failed lately, and those that
 * the same disruption budget guards, which are pods of the same namespace and labels. Without this, many guarded pods
 * would be tried in turn for ever, each when its pause is over, and a free one never.
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

// What a budget's selector sees of a pod.
function workloadKey({ namespace, labels }: EvictionPod): string {
  const selectable = Object.entries(labels).filter(([name]) => !podLabels.has(name));
  return JSON.stringify([namespace, ...selectable.sort(([a], [b]) => (a < b ? -1 : 1))]);
}
