/** The in-tree reporter plugins. */
export const inTreeReporterNames = ["system-reporter-plugin", "kubelet-reporter-plugin"] as const;
export type InTreeReporterName = (typeof inTreeReporterNames)[number];

/** The in-tree eviction plugins. They have the names of the katalyst plugins that they replace. */
export const inTreeEvictionNames = [
  "system-memory-pressure-eviction-plugin",
  "numa-memory-pressure-eviction-plugin",
  "reclaimed-resource-pressure-eviction-plugin",
  "rss-overuse-eviction-plugin",
  "rootfs-pressure-eviction-plugin",
  "rootfs-overuse-eviction-plugin",
  "pid-overuse-eviction-plugin",
  "system-cpu-pressure-eviction-plugin",
] as const;
