import type { KnownPlugin } from "../enabled-plugins.ts";

// The names under which katalyst's eviction plugins are known, and ours in their place.
export const SYSTEM_MEMORY_PRESSURE = "system-memory-pressure-eviction-plugin";
export const NUMA_MEMORY_PRESSURE = "numa-memory-pressure-eviction-plugin";
export const RSS_OVERUSE = "rss-overuse-eviction-plugin";
export const RECLAIMED_RESOURCE_PRESSURE = "reclaimed-resource-pressure-eviction-plugin";

/** For `enabledPlugins`. A pod that uses more than it asked for may be a good one: that plugin is off unless named. */
export const knownEvictionPlugins: readonly KnownPlugin[] = [
  { name: SYSTEM_MEMORY_PRESSURE },
  { name: NUMA_MEMORY_PRESSURE },
  { name: RECLAIMED_RESOURCE_PRESSURE },
  { name: RSS_OVERUSE, onByDefault: false },
];
