import { compareText } from "../text/index.ts";
import type { EvictionPod, QosClass } from "./pods.ts";
import type { RankKeyName } from "./policy.ts";

const classImportance: Readonly<Record<QosClass, number>> = { BestEffort: 0, Burstable: 1, Guaranteed: 2 };

// katalyst's order of scopes. All other scopes rank lower.
const scopeImportance: ReadonlyMap<string, number> = new Map([
  ["cpu", 1],
  ["memory", 2],
  ["force", 3],
]);

/** A pod, and the scope of the first request for it; null if no plugin requested the pod. */
export interface Rankable {
  pod: Pick<EvictionPod, "uid" | "namespace" | "name" | "qosLevel" | "qosClass" | "priority">;
  scope: string | null;
}

interface RankKey {
  name: string;
  compare(a: Rankable, b: Rankable): number;
  shownOf(one: Rankable): string;
}

const importanceKeys: Readonly<Record<RankKeyName, RankKey>> = {
  qosLevel: {
    name: "QoS level",
    compare: (a, b) => levelImportance(a) - levelImportance(b),
    shownOf: ({ pod }) => pod.qosLevel,
  },
  qosClass: {
    name: "QoS class",
    compare: (a, b) => classImportance[a.pod.qosClass] - classImportance[b.pod.qosClass],
    shownOf: ({ pod }) => pod.qosClass,
  },
  priority: {
    name: "priority",
    compare: (a, b) => a.pod.priority - b.pod.priority,
    shownOf: ({ pod }) => String(pod.priority),
  },
  scope: {
    name: "scope",
    compare: (a, b) => importanceOfScope(a.scope) - importanceOfScope(b.scope),
    shownOf: ({ scope }) => scope ?? "not requested",
  },
};
const nameKeys: readonly RankKey[] = (["name", "namespace", "uid"] as const).map((key) => ({
  name: key === "uid" ? "UID" : key,
  compare: (a, b) => compareText(a.pod[key], b.pod[key]),
  shownOf: ({ pod }) => pod[key],
}));

/**
 * Returns the comparison of two pods by rank: negative if `a` is evicted before `b`. Compares the keys of `ranking` in
 * their order (QoS level: reclaimed_cores first, all others are equal), then name, namespace and UID. Two different
 * pods are never equal.
 */
export function rankOrder(ranking: readonly RankKeyName[]): (a: Rankable, b: Rankable) => number {
  const keys = keysOf(ranking);
  return (a, b) => {
    for (const { compare } of keys) {
      const difference = compare(a, b);
      if (difference !== 0) return difference;
    }
    return 0;
  };
}

/** Returns why `more` ranks higher than `less`, for example "priority 100 over 0". */
export function differenceOf(ranking: readonly RankKeyName[], less: Rankable, more: Rankable): string {
  const key = ranking.map((name) => importanceKeys[name]).find(({ compare }) => compare(less, more) !== 0);
  return key ? `${key.name} ${key.shownOf(more)} over ${key.shownOf(less)}` : "by name, all else is equal";
}

/** One key of a comparison of two pods. */
export interface ComparedKey {
  /** For example "QoS level" or "priority". */
  name: string;
  /** The values of both pods. */
  values: readonly [string, string];
  /** `decides`: the first key in which they differ. Later keys are not compared. */
  result: "equal" | "decides" | "notCompared";
}

/** Returns the comparison of two pods by `rankOrder`, key by key. */
export function comparisonOf(ranking: readonly RankKeyName[], a: Rankable, b: Rankable): ComparedKey[] {
  const keys = keysOf(ranking);
  const deciding = keys.findIndex(({ compare }) => compare(a, b) !== 0);
  return keys.map(({ name, shownOf }, index) => ({
    name,
    values: [shownOf(a), shownOf(b)],
    result: index === deciding ? "decides" : deciding < 0 || index < deciding ? "equal" : "notCompared",
  }));
}

function keysOf(ranking: readonly RankKeyName[]): readonly RankKey[] {
  return [...ranking.map((name) => importanceKeys[name]), ...nameKeys];
}

function levelImportance({ pod }: Rankable): number {
  return pod.qosLevel === "reclaimed_cores" ? 0 : 1;
}

function importanceOfScope(scope: string | null): number {
  return scopeImportance.get(scope ?? "") ?? 0;
}
