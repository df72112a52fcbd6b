export { enabledPlugins, type KnownPlugin } from "./enabled-plugins.ts";
export { type AllocatableOptions, customNodeResourceAllocatable } from "./eviction/allocatable.ts";
export {
  defaultInTreeEvictionSettings,
  type InTreeEvictionSettings,
  inTreeEvictionSources,
  knownEvictionPlugins,
} from "./eviction/in-tree-sources.ts";
export { createInTreeEvictionMetrics, type InTreeEvictionMetrics } from "./eviction/missing-readings.ts";
export type { NumaMemorySettings } from "./eviction/numa-memory.ts";
export type { EvictionPluginParts, ResourceListReader } from "./eviction/parts.ts";
export type { ReclaimedResourceSettings } from "./eviction/reclaimed-resources.ts";
export type { RssOveruseSettings } from "./eviction/rss-overuse.ts";
export type { SystemMemorySettings } from "./eviction/system-memory.ts";
export { type RankingMetric, rankingMetrics } from "./eviction/victim-ranking.ts";
export {
  KUBELET_REPORTER_NAME,
  KubeletReporter,
  type KubeletReporterOptions,
} from "./kubelet/kubelet-reporter.ts";
export { createKubeletReporterMetrics } from "./kubelet/metrics.ts";
export { podUidLookup, type RunningPods } from "./kubelet/pod-uids.ts";
export {
  defaultKubeletReporterSettings,
  type KubeletReporterSettings,
  parseDeviceZones,
} from "./kubelet/settings.ts";
export { SYSTEM_REPORTER_NAME, SystemReporter, type SystemReporterOptions } from "./system-reporter.ts";
