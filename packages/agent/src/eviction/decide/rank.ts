import type { EvictionPod, QosClass } from "./pods.ts";

const classImportance: Readonly<Record<QosClass, number>> = { BestEffort: 0, Burstable: 1, Guaranteed: 2 };

// katalyst's order of scopes; all other scopes rank below.
const scopeImportance: ReadonlyMap<string, number> = new Map([
  ["cpu", 1],
  ["memory", 2],
  ["force", 3],
]);

/** A pod and the scope of the request that counts for it; null where no plugin requested it. */
export interface Rankable {
  pod: EvictionPod;
  scope: string | null;
}

/**
 * Compares two pods by rank: negative if `a` is evicted before `b`. The keys in order: katalyst's QoS level
 * (reclaimed_cores first, all others are equal), QoS class, priority, scope, name, namespace, UID. Two different pods are
 * never equal.
 */
export function compareImportance(a: Rankable, b: Rankable): number {
  return (
    levelImportance(a.pod) - levelImportance(b.pod) ||
    classImportance[a.pod.qosClass] - classImportance[b.pod.qosClass] ||
    a.pod.priority - b.pod.priority ||
    importanceOfScope(a.scope) - importanceOfScope(b.scope) ||
    compareText(a.pod.name, b.pod.name) ||
    compareText(a.pod.namespace, b.pod.namespace) ||
    compareText(a.pod.uid, b.pod.uid)
  );
}

/** Why `more` ranks higher than `less`: "priority 100 over 0". */
export function differenceOf(less: Rankable, more: Rankable): string {
  const [a, b] = [less.pod, more.pod];
  if (levelImportance(a) !== levelImportance(b)) return `QoS level ${b.qosLevel} over ${a.qosLevel}`;
  if (a.qosClass !== b.qosClass) return `QoS class ${b.qosClass} over ${a.qosClass}`;
  if (a.priority !== b.priority) return `priority ${b.priority} over ${a.priority}`;
  if (importanceOfScope(less.scope) !== importanceOfScope(more.scope)) {
    return `scope ${more.scope} over ${less.scope}`;
  }
  return "by name, all else is equal";
}

/** Compares by code units, independent of the locale. */
export function compareText(a: string, b: string): number {
  if (a === b) return 0;
  return a < b ? -1 : 1;
}

function levelImportance(pod: EvictionPod): number {
  return pod.qosLevel === "reclaimed_cores" ? 0 : 1;
}

function importanceOfScope(scope: string | null): number {
  return scopeImportance.get(scope ?? "") ?? 0;
}
