import type { NodeTaint } from "../decide/taints.ts";

/** A taint of a Node; fields that are not read are kept. */
export interface LiveTaint {
  key?: string;
  effect?: string;
  value?: unknown;
  timeAdded?: string;
  [field: string]: unknown;
}

/** RFC 3339 with whole seconds, as `metav1.Time`. */
export function taintTime(since: number): string {
  return new Date(since).toISOString().replace(/\.\d+Z$/, "Z");
}

/** The agent's desired taints. They have no value. */
export interface OwnTaints {
  desired: readonly Omit<NodeTaint, "why">[];
  /** Taints whose key starts with the prefix and a slash belong to the agent. */
  prefix: string;
  /** Whether the agent's taints that are not desired are removed. */
  isComplete: boolean;
}

/**
 * The desired list of a Node's taints: taints of other clients unchanged and in their order, the agent's without a value
 * that another client set, then the missing ones. Undefined where the list needs no change. Pure.
 */
export function mergeNodeTaints(
  live: readonly LiveTaint[],
  { desired, prefix, isComplete }: OwnTaints,
): LiveTaint[] | undefined {
  const isOurs = ({ key = "" }: LiveTaint) => key.startsWith(`${prefix}/`);
  const desiredIds = new Set(desired.map(idOf));
  const liveIds = new Set(live.map(idOf));
  const kept = live.filter((taint) => !isComplete || !isOurs(taint) || desiredIds.has(idOf(taint)));
  const hasForeignValue = (taint: LiveTaint) =>
    isOurs(taint) && desiredIds.has(idOf(taint)) && Boolean(taint.value);
  const missing = desired.filter((taint) => !liveIds.has(idOf(taint)));
  if (missing.length === 0 && kept.length === live.length && !kept.some(hasForeignValue)) return undefined;
  return [
    ...kept.map((taint) => (hasForeignValue(taint) ? withoutValue(taint) : taint)),
    ...missing.map(({ key, effect, since }) => ({ key, effect, timeAdded: taintTime(since) })),
  ];
}

/** The taints in `after` that are not in `before`, as "key:effect". */
export function newTaints(before: readonly LiveTaint[], after: readonly LiveTaint[]): string[] {
  const known = new Set(before.map(idOf));
  return after.map(idOf).filter((id) => !known.has(id));
}

/** The taints in both lists whose value differs, as "key:effect". */
export function restoredTaints(before: readonly LiveTaint[], after: readonly LiveTaint[]): string[] {
  const values = new Map(before.map((taint) => [idOf(taint), taint.value]));
  return after.filter((taint) => taint.value !== (values.get(idOf(taint)) ?? taint.value)).map(idOf);
}

function withoutValue({ value: _value, ...taint }: LiveTaint): LiveTaint {
  return taint;
}

// Kubernetes identifies taints by key and effect.
function idOf({ key, effect }: Pick<LiveTaint, "key" | "effect">): string {
  return `${key}:${effect}`;
}
