import type { ApiAnswers } from "@nodekeeper/api/openapi";

export type Eviction = ApiAnswers["eviction/evictions"]["items"][number];

/** An eviction; or identical dry-run requests of a plugin, which are repeated each round, with their number. */
export interface EvictionGroup {
  last: Eviction;
  times: number;
}

/** Groups evictions, newest first. @param items oldest first */
export function groupEvictions(items: readonly Eviction[]): EvictionGroup[] {
  const groups: EvictionGroup[] = [];
  const ofDryRun = new Map<string, EvictionGroup>();
  for (const one of items.toReversed()) {
    const key = `${one.uid} ${one.plugin} ${one.scope}`;
    const known = one.dryRun ? ofDryRun.get(key) : undefined;
    if (known) {
      known.times++;
      continue;
    }
    const group = { last: one, times: 1 };
    groups.push(group);
    if (one.dryRun) ofDryRun.set(key, group);
  }
  return groups;
}
