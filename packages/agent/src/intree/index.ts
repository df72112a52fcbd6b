// In-tree reporter and eviction plugins, written against the interfaces of external ones. Terms:
// reading: a value read from the host or the API server, with its time; missing readings never cause an eviction.
// sample: one evaluation of readings in a round; severity: which pods are candidates (none, reclaimed, all).
// candidate: a pod that can be selected; victim: a selected pod; ranking: the order of candidates.
// zone: a node of the CustomNodeResource's topology tree: socket, NUMA node, L3 cache group or device.
// reclaimed, shared, dedicated: katalyst's QoS levels.
export { enabledPlugins, type KnownPlugin } from "./enabled-plugins.ts";
export { type AllocatableOptions, customNodeResourceAllocatable } from "./eviction/allocatable.ts";
export type { EvictionPluginParts, ResourceListReader } from "./eviction/in-tree-plugin.ts";
export {
  type InTreeEvictionSettings,
  inTreeEvictionSources,
} from "./eviction/in-tree-sources.ts";
export { createInTreeEvictionMetrics, type InTreeEvictionMetrics } from "./eviction/missing-readings.ts";
export { pairOf } from "./eviction/settings.ts";
export { type RankingMetric, rankingMetrics } from "./eviction/victims.ts";
export {
  KUBELET_REPORTER_NAME,
  KubeletReporter,
  type KubeletReporterOptions,
} from "./kubelet/kubelet-reporter.ts";
export { createKubeletReporterMetrics } from "./kubelet/metrics.ts";
export { devicesInUse } from "./kubelet/pod-resources.ts";
export { podUidLookup, type RunningPods } from "./kubelet/pod-uids.ts";
export { SYSTEM_REPORTER_NAME, SystemReporter, type SystemReporterOptions } from "./system-reporter.ts";
