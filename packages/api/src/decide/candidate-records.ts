import { compareText } from "../text/index.ts";
import type { Selection } from "./candidates.ts";
import type { CandidateRecord, EvictionBucket } from "./decision.ts";
import type { Eligibility } from "./eligibility.ts";
import type { BudgetStatus } from "./outcome.ts";
import type { EvictionPod } from "./pods.ts";
import type { RecentEviction } from "./state.ts";

const BUCKET_MS = 60_000;
// Bounds the size of the request on nodes with thousands of pods.
const MOST_RECORDS = 1_000;

/**
 * Returns the `EvictionRecord`s of a GetTopEvictionPods request: candidates that are not offered, with the
 * PodDisruptionBudget that forbids their eviction; offered ones that are tried last; and offered ones whose owner lost
 * pods recently. Sorted by UID, at most 1,000.
 * @param counted the evictions that count, oldest first
 */
export function evictionRecordsOf(
  { candidates }: Selection,
  { ineligible, last }: Eligibility,
  counted: readonly RecentEviction[],
): CandidateRecord[] {
  const obstacles = new Map(ineligible.map((pod) => [pod.uid, pod]));
  const histories = historiesOf(counted);
  const records: CandidateRecord[] = [];
  for (const pod of candidates) {
    const obstacle = obstacles.get(pod.uid);
    const buckets = histories.get(workloadOf(pod)) ?? [];
    if (!obstacle && !last.has(pod.uid) && buckets.length === 0) continue;
    records.push({ uid: pod.uid, ...budgetOf(obstacle?.budget ?? last.get(pod.uid) ?? null), buckets });
  }
  return records.sort((a, b) => compareText(a.uid, b.uid)).slice(0, MOST_RECORDS);
}

// A budget is only known from a refusal by the API server, so disruptionsAllowed is always 0.
function budgetOf(budget: BudgetStatus | null): Omit<CandidateRecord, "uid" | "buckets"> {
  return {
    hasPdb: budget !== null,
    disruptionsAllowed: 0,
    currentHealthy: budget?.currentHealthy ?? 0,
    desiredHealthy: budget?.desiredHealthy ?? 0,
  };
}

function workloadOf({ uid, owner }: EvictionPod): string {
  return owner?.uid ?? uid;
}

function historiesOf(counted: readonly RecentEviction[]): Map<string, EvictionBucket[]> {
  const histories = new Map<string, EvictionBucket[]>();
  for (const { uid, ownerUid, at } of counted) {
    const key = ownerUid ?? uid;
    const buckets = histories.get(key) ?? [];
    histories.set(key, buckets);
    const time = (Math.floor(at / BUCKET_MS) * BUCKET_MS) / 1000;
    const last = buckets.at(-1);
    if (last?.time === time) last.count++;
    else buckets.push({ time, duration: BUCKET_MS / 1000, count: 1 });
  }
  return histories;
}
