// The types of eviction, in the order of a round (docs/contributing/glossary.md has the terms):
//
// EvictionPod       the fields of a pod that eviction reads; a `Selection` splits pods into candidates and exclusions
// PluginAnswers     a plugin's answers to GetEvictPods and ThresholdMet; `TopAnswers` those to GetTopEvictionPods
// MetThreshold      a threshold that a plugin reports as met: since when, whether confirmed, and why it is on hold
// Ask               a plugin's checked request to evict one pod, forced or soft
// Decision          the result of `decide`: victims, ranking, refusals, withdrawals, taints, and the next state
// Victim            a pod whose eviction starts, with the requests for it
// EvictionState     the state passed to the next round: grace timers, conditions, queued and pending evictions
// EvictionOutcome   how an eviction ended
// EvictionPolicy    the configured rules of `decide`: burst, limits, grace periods, cooldown
// RoundRecord       a round's input and decision, kept for `explain` and `replay`

export { namingNode } from "./about-pod.ts";
export { deletionKiller, evictionApiKiller } from "./act/api-killers.ts";
export { ConditionReporter } from "./act/condition-reporter.ts";
export { ContainerKiller, type ContainerKillerOptions } from "./act/container-killer.ts";
export { DecisionEffects } from "./act/decision-effects.ts";
export { EvictedContainers, type EvictedContainersOptions } from "./act/evicted-containers.ts";
export { EvictionSender, type EvictionSenderOptions } from "./act/eviction-sender.ts";
export { PodEvictor, type PodEvictorOptions } from "./act/evictor.ts";
export { HostPathNotifier } from "./act/host-path-notifier.ts";
export { type Killer, type KillerName, killerFor } from "./act/killer.ts";
export { NodeCondition, type NodeConditionOptions } from "./act/node-condition.ts";
export { NodeTainter, type NodeTainterOptions } from "./act/node-tainter.ts";
export { Notifier } from "./act/notifier.ts";
export { OomEvents } from "./act/oom-events.ts";
export { releaseNode } from "./act/release-node.ts";
export { noPods, noTopPods, notMet } from "./ask/empty-answers.ts";
export { EvictionPlugins, type EvictionPluginsOptions } from "./ask/plugins.ts";
export type { EvictionPluginStatus } from "./ask/served-plugin.ts";
export type { EvictionSource } from "./ask/source.ts";
export { ThresholdSampler, type ThresholdSamplerOptions } from "./ask/threshold-sampler.ts";
export { reviewedTokens, type TokenCheck } from "./ask/token-check.ts";
export { BlockedEvictions } from "./blocked-evictions.ts";
export type { EvictionBudgets } from "./budgets.ts";
export type { CandidateCounts } from "./candidate-counts.ts";
export type { EvictionContext } from "./context.ts";
export { EvictionLedger } from "./ledger.ts";
export { EvictionManager, type EvictionManagerOptions } from "./manager.ts";
export { createEvictionMetrics, type EvictionMetrics } from "./metrics.ts";
export { NowQueries } from "./now-queries.ts";
export { type EncodablePod, type ObservedPod, observeJson, type PodDetails } from "./observe/observed-pod.ts";
export { PodWatch, type PodWatchOptions } from "./observe/pod-watch.ts";
export { type AnnotationValue, type QosAnnotations, qosLevelReader } from "./observe/qos-level.ts";
export type { NodePods, Tainter } from "./parts.ts";
export { RecentReadings, type RoundReadings } from "./readings.ts";
export { hardRefusals } from "./records/consequence.ts";
export { PodHistory, type PodHistoryOptions, readNodePod } from "./records/pod-history.ts";
export { type HistoryLine, importLine } from "./records/record-lines.ts";
export { RecordQueries } from "./records/record-queries.ts";
export type { EvictionPage } from "./records/recorded-evictions.ts";
export { storedTaints } from "./records/recorded-taints.ts";
export { EvictionRecords, type EvictionRecordsOptions } from "./records/records.ts";
export { RoundPacing } from "./round-pacing.ts";
export { SignalHistory, type SignalHistoryOptions } from "./signal-history.ts";
