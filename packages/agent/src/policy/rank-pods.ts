import { setImmediate as nextTurn } from "node:timers/promises";
import { type Clock, NodekeeperError } from "@nodekeeper/core/lib";
import type { ObservedPod } from "../eviction/index.ts";
import type { WholePods } from "../pod-usage/index.ts";
import { OLDEST_READING_MS, type Part } from "./node-snapshot.ts";
import { type PodContext, type PodUsage, podVariable } from "./pod-variable.ts";
import type { Policy } from "./policy.ts";

/** A pod that may be evicted, and the values that rank it. */
export interface RankedPod {
  pod: ObservedPod;
  values: number[];
}

/** A pod that does not go for a policy. */
export interface ExcludedPod {
  pod: ObservedPod;
  /** `filtered`: the policy's filter does not take it. `unknown`: what the policy reads of it is not known, or makes no sense. */
  kind: "filtered" | "unknown";
  why: string;
}

export interface PodRanking {
  /** Who goes first is first. */
  ranked: RankedPod[];
  /** Sorted by UID. */
  excluded: ExcludedPod[];
}

export interface RankingContext {
  usages: Part<ReadonlyMap<string, PodUsage>>;
  wholePods: Pick<WholePods, "of">;
  clock: Clock;
  /** CPU time of this process, milliseconds. */
  cpuMs: () => number;
  signal: AbortSignal;
}

// So long may others wait for their turn, milliseconds.
const SLICE_MS = 5;
/** CPU time that one ranking may take in all, milliseconds. Time in which other processes had the CPU costs it nothing. */
const LONGEST_MS = 200;

/**
 * Filters and ranks pods; their order does not matter, equal ones go by UID. Others have their turn in between. Throws
 * `exhausted` when it takes more than 200 ms of CPU time, and the signal's reason.
 */
export async function rankPods(
  policy: Policy,
  pods: readonly ObservedPod[],
  { usages, wholePods, clock, cpuMs, signal }: RankingContext,
): Promise<PodRanking> {
  // Wall time, for the age of pods alone.
  const now = clock.now();
  const isFresh = "value" in usages && clock.monotonic() - usages.at <= OLDEST_READING_MS;
  const known = isFresh ? usages.value : undefined;
  const ranking: PodRanking = { ranked: [], excluded: [] };
  let spentMs = 0;
  let startedAt = clock.monotonic();
  let cpuAtMs = cpuMs();
  for (const pod of pods) {
    const sliceMs = clock.monotonic() - startedAt;
    if (sliceMs > SLICE_MS) {
      // Never more than has passed: other threads of this process take CPU time as well.
      spentMs += Math.min(sliceMs, cpuMs() - cpuAtMs);
      if (spentMs > LONGEST_MS) throw tooSlow(policy, ranking, pods.length);
      await nextTurn();
      signal.throwIfAborted();
      startedAt = clock.monotonic();
      cpuAtMs = cpuMs();
    }
    const usage = known?.get(pod.pod.uid) ?? {};
    const verdict = verdictOf(policy, pod, { usage, wholePods, now });
    if ("values" in verdict) ranking.ranked.push(verdict);
    else ranking.excluded.push(verdict);
  }
  ranking.ranked.sort(compareRanked);
  ranking.excluded.sort((a, b) => compareUids(a.pod, b.pod));
  return ranking;
}

// What the filter does not take need not be known well enough to be ranked.
function verdictOf(
  { pods: filter, rank }: Policy,
  pod: ObservedPod,
  context: PodContext,
): RankedPod | ExcludedPod {
  const unknown = (why: string): ExcludedPod => ({ pod, kind: "unknown", why });
  if (filter) {
    const variable = podVariable(pod, filter.reads, context);
    if ("unknown" in variable) return unknown(variable.unknown);
    const taken = filter.evaluate(variable);
    if ("problem" in taken) return unknown(`the filter: ${taken.problem}`);
    if (!taken.value) return { pod, kind: "filtered", why: "the filter does not take it" };
  }
  const values: number[] = [];
  for (const [index, formula] of rank.entries()) {
    const variable = podVariable(pod, formula.reads, context);
    if ("unknown" in variable) return unknown(variable.unknown);
    const value = formula.evaluate(variable);
    if ("problem" in value) return unknown(`rank[${index}]: ${value.problem}`);
    values.push(value.value);
  }
  return { pod, values };
}

function compareRanked(a: RankedPod, b: RankedPod): number {
  for (const [index, value] of a.values.entries()) {
    const difference = b.values[index]! - value;
    if (difference !== 0) return difference;
  }
  return compareUids(a.pod, b.pod);
}

function compareUids({ pod: a }: ObservedPod, { pod: b }: ObservedPod): number {
  if (a.uid === b.uid) return 0;
  return a.uid < b.uid ? -1 : 1;
}

function tooSlow(policy: Policy, { ranked, excluded }: PodRanking, pods: number): NodekeeperError {
  const done = ranked.length + excluded.length;
  const message = `policy ${policy.name} takes more than ${LONGEST_MS} ms: ${done} of ${pods} pods were ranked`;
  return new NodekeeperError("exhausted", message);
}
