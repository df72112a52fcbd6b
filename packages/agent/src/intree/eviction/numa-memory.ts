import type { NodeMemory } from "../../host/index.ts";
import type { MemoryGrace, Severity } from "./severity.ts";
import type { RankingMetric } from "./victim-ranking.ts";

/** When a NUMA node is short of memory, and who goes then. */
export interface NumaMemorySettings extends MemoryGrace {
  /** Added to the kernel's low watermark, bytes, 0 or more: it must not go to and fro with kswapd. */
  lowGuardBytes: number;
  /** Added to the kernel's min watermark, bytes, 0 or more: below the sum there is danger. */
  minGapBytes: number;
  /** The low watermark is at least this while less page cache than this is idle, bytes, 0 or more. */
  lowReserveBytes: number;
  /** None of the three is more than this share of the node, 0 to 1: katalyst's figures are for large servers. */
  largestReserveShare: number;
  /** In more counts than this below the low watermark, reclaimed pods go; 1 or more. */
  reclaimedCounts: number;
  /** From this count on, anybody goes; more than `reclaimedCounts`. */
  allCounts: number;
  /** In danger, counting goes on from so many before `allCounts`; 0 or more. */
  dangerCounts: number;
  /** A victim uses at least this share of the node, 0 to 1. */
  victimMinimumShare: number;
  ranking: readonly RankingMetric[];
}

const Mi = 2 ** 20;
const Gi = 2 ** 30;

export const defaultNumaMemorySettings: Readonly<NumaMemorySettings> = {
  lowGuardBytes: 256 * Mi,
  minGapBytes: Gi,
  lowReserveBytes: 4 * Gi,
  largestReserveShare: 0.1,
  reclaimedCounts: 6,
  allCounts: 12,
  dangerCounts: 1,
  victimMinimumShare: 0.001,
  ranking: ["qosLevel", "priority", "nodeUsage"],
  gracePeriodSeconds: null,
  reclaimedGracePeriodSeconds: 10,
};

// From this count on, being far below the watermark counts twice.
const COUNTS_BEFORE_DOUBLE = 2;

/** The watermarks that a node is judged by, bytes. */
export interface Watermarks {
  minBytes: number;
  lowBytes: number;
  /** By which a node below the low one is far below it. */
  gapBytes: number;
  /** The page cache is nearly used up: nothing is left that the kernel could give back. */
  isCacheShort: boolean;
}

/** The kernel's watermarks with room for kswapd, and with more where the page cache is short. */
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

/** A node's verdict, and the count that the next look goes on from. */
export interface NodeVerdict {
  count: number;
  severity: Severity;
}

/**
 * Judges one look at a node. In danger reclaimed pods go at once; others follow only if the page cache is short as well,
 * for a node that is full of cache has little free memory for good. Below the low watermark the looks are counted.
 */
export function judgeNode(
  before: number,
  freeBytes: number,
  { minBytes, lowBytes, gapBytes, isCacheShort }: Watermarks,
  settings: NumaMemorySettings,
): NodeVerdict {
  const { reclaimedCounts, allCounts, dangerCounts } = settings;
  // Page cache that the kernel can give back costs nobody but reclaimed pods their place, whatever the settings.
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
  // It cools down step by step, and not from the top.
  return { count: Math.min(Math.max(0, before - 1), reclaimedCounts), severity: "none" };
}
