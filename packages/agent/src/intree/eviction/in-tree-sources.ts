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

/** Settings of all in-tree eviction plugins; they are asked for in each round and may change meanwhile. */
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

// Every in-tree eviction plugin, by its settings: the one list of them. Their names are katalyst's, for ours stand in
// the place of its.
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

/** For `enabledPlugins`. */
export const knownEvictionPlugins: readonly KnownPlugin[] = keys.map((key) => plugins[key]);

export const defaultInTreeEvictionSettings = Object.fromEntries(
  keys.map((key) => [key, plugins[key].defaults]),
) as unknown as Readonly<InTreeEvictionSettings>;

/** The eviction plugins that patterns ("*", "name", "-name") enable. Throws `invalid` for a pattern that names none. */
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
