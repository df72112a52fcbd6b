import type { EvictionSettings } from "@nodekeeper/api/settings";
import type { EvictionSource } from "../../eviction/index.ts";
import { enabledPlugins, type KnownPlugin } from "../enabled-plugins.ts";
import { type EvictionPluginParts, type InTreePlugin, inTreeSource } from "./in-tree-plugin.ts";
import { numaMemoryPressure } from "./numa-memory.ts";
import { pidOveruse, rootfsOveruse, rssOveruse } from "./overuse.ts";
import { reclaimedResourcePressure } from "./reclaimed-resources.ts";
import { rootfsPressure } from "./rootfs-pressure.ts";
import { systemCpuPressure } from "./system-cpu.ts";
import { systemMemoryPressure } from "./system-memory.ts";

// All in-tree eviction plugins, by the key of their settings.
const plugins = {
  systemMemory: systemMemoryPressure,
  numaMemory: numaMemoryPressure,
  reclaimedResources: reclaimedResourcePressure,
  rssOveruse,
  rootfsPressure,
  rootfsOveruse,
  pidOveruse,
  systemCpu: systemCpuPressure,
};
type Key = keyof typeof plugins;

/** Settings of all in-tree eviction plugins, read in each round. */
export type InTreeEvictionSettings = Pick<EvictionSettings, Key>;

const keys = Object.keys(plugins) as Key[];

/** All in-tree eviction plugins, for `enabledPlugins`. */
export const knownEvictionPlugins: readonly KnownPlugin[] = keys.map((key) => plugins[key]);

/** Returns the eviction plugins enabled by patterns ("*", "name", "-name"). */
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
  const plugin: { readonly [Name in Key]: InTreePlugin<InTreeEvictionSettings[Name]> } = plugins;
  return inTreeSource<InTreeEvictionSettings[K]>(plugin[key], parts, () => settings()[key]);
}
