import type { NodeTaint } from "../decide/taints.ts";

/** A taint as a Node has it; fields that are not read are kept. */
export interface LiveTaint {
  key?: string;
  effect?: string;
  value?: unknown;
  timeAdded?: string;
  [field: string]: unknown;
}

/** The time as the API server writes it: whole seconds. */
export function taintTime(since: number): string {
  return new Date(since).toISOString().replace(/\.\d+Z$/, "Z");
}

/** Our taints as they should be. They have no value. */
export interface OwnTaints {
  wanted: readonly Omit<NodeTaint, "why">[];
  /** Ours are those whose key begins with the prefix and a slash. */
  prefix: string;
  /** Whether ours that are not wanted go. */
  isComplete: boolean;
}

/**
 * The list a Node should have: taints of others as they are and in their order, ours that stay, without a value that
 * another client gave them, and those that are missing. Undefined where nothing is to change.
 */
export function mergeNodeTaints(
  live: readonly LiveTaint[],
  { wanted, prefix, isComplete }: OwnTaints,
): LiveTaint[] | undefined {
  const isOurs = ({ key = "" }: LiveTaint) => key.startsWith(`${prefix}/`);
  const wantedIds = new Set(wanted.map(idOf));
  const liveIds = new Set(live.map(idOf));
  const kept = live.filter((taint) => !isComplete || !isOurs(taint) || wantedIds.has(idOf(taint)));
  const hasForeignValue = (taint: LiveTaint) =>
    isOurs(taint) && wantedIds.has(idOf(taint)) && Boolean(taint.value);
  const missing = wanted.filter((taint) => !liveIds.has(idOf(taint)));
  if (missing.length === 0 && kept.length === live.length && !kept.some(hasForeignValue)) return undefined;
  return [
    ...kept.map((taint) => (hasForeignValue(taint) ? withoutValue(taint) : taint)),
    ...missing.map(({ key, effect, since }) => ({ key, effect, timeAdded: taintTime(since) })),
  ];
}

/** Those of `after` that `before` does not have, as "key:effect". */
export function newTaints(before: readonly LiveTaint[], after: readonly LiveTaint[]): string[] {
  const known = new Set(before.map(idOf));
  return after.map(idOf).filter((id) => !known.has(id));
}

/** Those of both whose value another client changed and `after` puts back, as "key:effect". */
export function restoredTaints(before: readonly LiveTaint[], after: readonly LiveTaint[]): string[] {
  const values = new Map(before.map((taint) => [idOf(taint), taint.value]));
  return after.filter((taint) => taint.value !== (values.get(idOf(taint)) ?? taint.value)).map(idOf);
}

function withoutValue({ value: _value, ...taint }: LiveTaint): LiveTaint {
  return taint;
}

// Kubernetes tells taints apart by key and effect.
function idOf({ key, effect }: Pick<LiveTaint, "key" | "effect">): string {
  return `${key}:${effect}`;
}
