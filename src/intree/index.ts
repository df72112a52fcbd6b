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
export { PodDisks, type PodDisksOptions } from "./eviction/pod-disk.ts";
export { PodMemories, type PodMemoriesOptions, type PodMemory } from "./eviction/pod-memory.ts";
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
export { HostNodeReadings, type HostNodeReadingsOptions, podUsageOf } from "./policy/host-node-readings.ts";
export { loadPolicies } from "./policy/load-policies.ts";
export type { Policy } from "./policy/policy.ts";
export { createPolicyMetrics, type PolicyMetrics } from "./policy/policy-metrics.ts";
export { describeProblem, type LoadedPolicies, type PolicyProblem } from "./policy/policy-problem.ts";
export { type PolicyParts, policySources } from "./policy/policy-sources.ts";
export type { Scene } from "./policy/scene.ts";
export { readSceneFile, type SceneFile, sceneOfFile } from "./policy/scene-file.ts";
export { sceneOfRecord } from "./policy/scene-of-record.ts";
export { type PolicyTrial, tryPolicy } from "./policy/try-policy.ts";
export { SYSTEM_REPORTER_NAME, SystemReporter, type SystemReporterOptions } from "./system-reporter.ts";
