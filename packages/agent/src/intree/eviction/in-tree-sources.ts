import type { EvictionSource } from "../../eviction/index.ts";
import { enabledPlugins, type KnownPlugin } from "../enabled-plugins.ts";
import { type InTreePlugin, inTreeSource } from "./in-tree-plugin.ts";
import type { NumaMemorySettings } from "./numa-memory.ts";
import { numaMemoryPressure } from "./numa-memory-plugin.ts";
import type { EvictionPluginParts } from "./parts.ts";
import { type PidOveruseSettings, pidOveruse } from "./pid-overuse-plugin.ts";
import { reclaimedResourcePressure } from "./reclaimed-resource-plugin.ts";
import type { ReclaimedResourceSettings } from "./reclaimed-resources.ts";
import { type RootfsOveruseSettings, rootfsOveruse } from "./rootfs-overuse-plugin.ts";
import { type RootfsPressureSettings, rootfsPressure } from "./rootfs-pressure-plugin.ts";
import type { RssOveruseSettings } from "./rss-overuse.ts";
import { rssOveruse } from "./rss-overuse-plugin.ts";
import type { SystemCpuSettings } from "./system-cpu.ts";
import { systemCpuPressure } from "./system-cpu-plugin.ts";
import type { SystemMemorySettings } from "./system-memory.ts";
import { systemMemoryPressure } from "./system-memory-plugin.ts";

/** Settings of all in-tree eviction plugins, read in each round. */
export interface InTreeEvictionSettings {
  systemMemory: SystemMemorySettings;
  numaMemory: NumaMemorySettings;
  reclaimedResources: ReclaimedResourceSettings;
  rssOveruse: RssOveruseSettings;
  rootfsPressure: RootfsPressureSettings;
  rootfsOveruse: RootfsOveruseSettings;
  pidOveruse: PidOveruseSettings;
  systemCpu: SystemCpuSettings;
}

type Key = keyof InTreeEvictionSettings;

// All in-tree eviction plugins, by the key of their settings. They have katalyst's names, since they replace its plugins.
const plugins: { readonly [K in Key]: InTreePlugin<InTreeEvictionSettings[K]> } = {
  systemMemory: systemMemoryPressure,
  numaMemory: numaMemoryPressure,
  reclaimedResources: reclaimedResourcePressure,
  rssOveruse,
  rootfsPressure,
  rootfsOveruse,
  pidOveruse,
  systemCpu: systemCpuPressure,
};
const keys = Object.keys(plugins) as Key[];

/** All in-tree eviction plugins, for `enabledPlugins`. */
export const knownEvictionPlugins: readonly KnownPlugin[] = keys.map((key) => plugins[key]);

/** The eviction plugins enabled by patterns ("*", "name", "-name"). Throws `invalid` for an unknown name. */
export function inTreeEvictionSources(
  patterns: readonly string[],
  parts: EvictionPluginParts,
  settings: () => InTreeEvictionSettings,
): EvictionSource[] {
  const enabled = enabledPlugins(knownEvictionPlugins, patterns);
  return keys.flatMap((key) => (enabled.includes(plugins[key].name) ? [started(key, parts, settings)] : []));
}

function started<K extends Key>(
  key: K,
  parts: EvictionPluginParts,
  settings: () => InTreeEvictionSettings,
): EvictionSource {
  return inTreeSource<InTreeEvictionSettings[K]>(plugins[key], parts, () => settings()[key]);
}
