import type { EvictionSource } from "../../eviction/index.ts";
import { enabledPlugins } from "../enabled-plugins.ts";
import {
  knownEvictionPlugins,
  NUMA_MEMORY_PRESSURE,
  RECLAIMED_RESOURCE_PRESSURE,
  RSS_OVERUSE,
  SYSTEM_MEMORY_PRESSURE,
} from "./names.ts";
import { defaultNumaMemorySettings, type NumaMemorySettings } from "./numa-memory.ts";
import { numaMemoryPressurePlugin } from "./numa-memory-plugin.ts";
import type { EvictionPluginParts } from "./parts.ts";
import {
  type ReclaimedResourceOptions,
  reclaimedResourcePressurePlugin,
} from "./reclaimed-resource-plugin.ts";
import { defaultReclaimedResourceSettings, type ReclaimedResourceSettings } from "./reclaimed-resources.ts";
import { defaultRssOveruseSettings, type RssOveruseSettings } from "./rss-overuse.ts";
import { rssOverusePlugin } from "./rss-overuse-plugin.ts";
import { defaultSystemMemorySettings, type SystemMemorySettings } from "./system-memory.ts";
import { systemMemoryPressurePlugin } from "./system-memory-plugin.ts";

/** Settings of all in-tree eviction plugins; they are asked for in each round and may change meanwhile. */
export interface InTreeEvictionSettings {
  systemMemory: SystemMemorySettings;
  numaMemory: NumaMemorySettings;
  rssOveruse: RssOveruseSettings;
  reclaimedResources: ReclaimedResourceSettings;
}

export const defaultInTreeEvictionSettings: Readonly<InTreeEvictionSettings> = {
  systemMemory: defaultSystemMemorySettings,
  numaMemory: defaultNumaMemorySettings,
  rssOveruse: defaultRssOveruseSettings,
  reclaimedResources: defaultReclaimedResourceSettings,
};

/** The eviction plugins that patterns ("*", "name", "-name") enable. Throws `invalid` for a pattern that names none. */
export function inTreeEvictionSources(
  patterns: readonly string[],
  parts: EvictionPluginParts & ReclaimedResourceOptions,
  settings: () => InTreeEvictionSettings,
): EvictionSource[] {
  const make: Readonly<Record<string, () => EvictionSource>> = {
    [SYSTEM_MEMORY_PRESSURE]: () => systemMemoryPressurePlugin(parts, () => settings().systemMemory),
    [NUMA_MEMORY_PRESSURE]: () => numaMemoryPressurePlugin(parts, () => settings().numaMemory),
    [RSS_OVERUSE]: () => rssOverusePlugin(parts, () => settings().rssOveruse),
    [RECLAIMED_RESOURCE_PRESSURE]: () =>
      reclaimedResourcePressurePlugin(parts, () => settings().reclaimedResources, parts),
  };
  return enabledPlugins(knownEvictionPlugins, patterns).map((name) => make[name]!());
}
