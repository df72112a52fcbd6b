import { setImmediate as nextTurn } from "node:timers/promises";
import { type Clock, NodekeeperError } from "@nodekeeper/core/lib";
import type { ObservedPod } from "../eviction/index.ts";
import type { PodUsage } from "./fields.ts";
import { OLDEST_READING_MS, type Part } from "./node-snapshot.ts";
import { type PodContext, podVariable } from "./pod-variable.ts";
import type { Policy } from "./policy.ts";

/** A pod that may be evicted, and the values by which it is ranked. */
export interface RankedPod {
  pod: ObservedPod;
  values: number[];
}

/** A pod that a policy does not evict. */
export interface ExcludedPod {
  pod: ObservedPod;
  /**
   * `filtered`: the policy's filter excludes the pod. `unknown`: a field that the policy reads is unknown or
   * cannot be evaluated.
   */
  kind: "filtered" | "unknown";
  why: string;
}

export interface PodRanking {
  /** In eviction order. */
  ranked: RankedPod[];
  /** Sorted by UID. */
  excluded: ExcludedPod[];
}

export interface RankingContext {
  usages: Part<ReadonlyMap<string, PodUsage>>;
  clock: Clock;
  /** Returns the CPU time of this process in milliseconds. */
  cpuMs: () => number;
  signal: AbortSignal;
}

// Maximum time without yielding to other tasks, in milliseconds.
const SLICE_MS = 5;
/** Maximum CPU time of one ranking, in milliseconds. Time used by other processes does not count. */
const LONGEST_MS = 200;

/**
 * Filters and ranks pods. Pods with equal values are ordered by UID, regardless of the input order. Yields to
 * other tasks in between. Throws `exhausted` after 200 ms of CPU time, and the signal's reason.
 */
export async function rankPods(
  policy: Policy,
  pods: readonly ObservedPod[],
  { usages, clock, cpuMs, signal }: RankingContext,
): Promise<PodRanking> {
  // The wall clock is used only for the age of pods.
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
      // At most the elapsed time, because other threads of this process use CPU time as well.
      spentMs += Math.min(sliceMs, cpuMs() - cpuAtMs);
      if (spentMs > LONGEST_MS) throw tooSlow(policy, ranking, pods.length);
      await nextTurn();
      signal.throwIfAborted();
      startedAt = clock.monotonic();
      cpuAtMs = cpuMs();
    }
    const usage = known?.get(pod.pod.uid) ?? {};
    const verdict = verdictOf(policy, pod, { usage, now });
    if ("values" in verdict) ranking.ranked.push(verdict);
    else ranking.excluded.push(verdict);
  }
  ranking.ranked.sort(compareRanked);
  ranking.excluded.sort((a, b) => compareUids(a.pod, b.pod));
  return ranking;
}

// A pod that the filter excludes does not need the fields used for ranking.
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
    if (!taken.value) return { pod, kind: "filtered", why: "excluded by the filter" };
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
