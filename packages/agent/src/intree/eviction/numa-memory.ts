import type { NodeMemory } from "../../host/index.ts";
import type { MemoryGrace, Severity } from "./severity.ts";
import type { RankingMetric } from "./victim-ranking.ts";

/** Thresholds of memory pressure on a NUMA node, and the selection of pods. */
export interface NumaMemorySettings extends MemoryGrace {
  /** Added to the kernel's low watermark, bytes, 0 or more, so that eviction does not alternate with kswapd. */
  lowGuardBytes: number;
  /** Added to the kernel's min watermark, bytes, 0 or more. Below the sum, reclaimed pods are evicted immediately. */
  minGapBytes: number;
  /** Minimum of the low watermark while inactive page cache is below this, bytes, 0 or more. */
  lowReserveBytes: number;
  /** Upper bound of these three as a share of the node's memory, 0 to 1; katalyst's values are for large servers. */
  largestReserveShare: number;
  /** Number of samples below the low watermark after which reclaimed pods are candidates; 1 or more. */
  reclaimedCounts: number;
  /** Number of samples below the low watermark after which all pods are candidates; more than `reclaimedCounts`. */
  allCounts: number;
  /** Below the min watermark, counting continues from this many samples before `allCounts`; 0 or more. */
  dangerCounts: number;
  /** Minimum share of the node's memory that a victim uses, 0 to 1. */
  victimMinimumShare: number;
  ranking: readonly RankingMetric[];
}

// After this many samples, a sample far below the watermark counts twice.
const COUNTS_BEFORE_DOUBLE = 2;

/** Watermarks of a NUMA node, bytes. */
export interface Watermarks {
  minBytes: number;
  lowBytes: number;
  /** Below this, free memory is far below the low watermark. */
  gapBytes: number;
  /** Whether inactive page cache is short, so that the kernel cannot reclaim memory from it. */
  isCacheShort: boolean;
}

/** The kernel's watermarks plus the configured gaps, increased if inactive page cache is short. */
export function watermarksOf(node: NodeMemory, settings: NumaMemorySettings): Watermarks {
  const largest = settings.largestReserveShare * node.totalBytes;
  const guard = Math.min(settings.lowGuardBytes, largest);
  const gapBytes = Math.min(settings.minGapBytes, largest);
  const reserve = Math.min(settings.lowReserveBytes, largest);
  const minBytes = node.minBytes + gapBytes;
  const lowBytes = node.lowBytes + guard;
  const isCacheShort = node.inactiveFileBytes < Math.max(reserve, lowBytes);
  const raised = isCacheShort ? Math.max(reserve, lowBytes + gapBytes) : lowBytes;
  return { minBytes, lowBytes: raised, gapBytes, isCacheShort };
}

/** Severity for a node, and its sample count. */
export interface NodeVerdict {
  count: number;
  severity: Severity;
}

/**
 * Evaluates one sample of a node. Below the min watermark, reclaimed pods are candidates immediately, and other pods only
 * if the page cache is short as well, since a node full of page cache permanently has little free memory. Below the low
 * watermark, samples are counted.
 */
export function judgeNode(
  before: number,
  freeBytes: number,
  { minBytes, lowBytes, gapBytes, isCacheShort }: Watermarks,
  settings: NumaMemorySettings,
): NodeVerdict {
  const { reclaimedCounts, allCounts, dangerCounts } = settings;
  // While the kernel can reclaim page cache, only reclaimed pods are candidates, regardless of the settings.
  const worst: Severity = isCacheShort ? "all" : "reclaimed";
  if (freeBytes < minBytes) {
    const soon = Math.max(0, allCounts - dangerCounts);
    const count = before < soon ? soon : Math.min(isCacheShort ? before + 1 : soon, allCounts);
    return { count, severity: count >= allCounts ? worst : "reclaimed" };
  }
  if (freeBytes < lowBytes) {
    const isFarBelow =
      freeBytes < (minBytes + lowBytes) / 2 || (lowBytes > gapBytes && freeBytes < lowBytes - gapBytes);
    const step = isFarBelow && before + 1 > COUNTS_BEFORE_DOUBLE ? 2 : 1;
    const count = Math.min(before + step, allCounts);
    if (count >= allCounts) return { count, severity: worst };
    return { count, severity: count > reclaimedCounts ? "reclaimed" : "none" };
  }
  // The count decreases by one for each sample, starting from at most reclaimedCounts.
  return { count: Math.min(Math.max(0, before - 1), reclaimedCounts), severity: "none" };
}
