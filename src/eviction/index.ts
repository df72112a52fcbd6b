export type {
  Answered,
  ConditionAnswer,
  EvictPodAnswer,
  EvictPodsAnswer,
  MetType,
  PluginAnswers,
  ThresholdAnswer,
  TopAnswer,
  TopAnswers,
} from "./answers.ts";
export type { Exclusion, ExclusionReason, Selection } from "./candidates.ts";
export { ConditionReporter } from "./condition-reporter.ts";
export type { MergedCondition } from "./conditions.ts";
export { ContainerDeaths, type ContainerDeathsOptions } from "./container-deaths.ts";
export { ContainerKiller, type ContainerKillerOptions } from "./container-killer.ts";
export { decide } from "./decide.ts";
export type {
  Ask,
  CallFailure,
  Decision,
  MetThreshold,
  Notification,
  RankedCandidate,
  Refusal,
  TopQuestion,
  Victim,
  Withdrawal,
} from "./decision.ts";
export { DeletionKiller } from "./deletion-killer.ts";
export { noPods, noTopPods, notMet } from "./empty-answers.ts";
export { EvictionApiKiller } from "./eviction-api-killer.ts";
export { EvictionSender, type EvictionSenderOptions } from "./eviction-sender.ts";
export { PodEvictor, type PodEvictorOptions } from "./evictor.ts";
export { createEvictorMetrics, type EvictorMetrics } from "./evictor-metrics.ts";
export type {
  ExplainedRound,
  ExplainedThreshold,
  Neighbour,
  PodExplanation,
} from "./explain.ts";
export type { ExplainedCondition, NodeExplanation } from "./explain-node.ts";
export { heldText } from "./held-text.ts";
export { createHostPathNotifierMetrics, HostPathNotifier } from "./host-path-notifier.ts";
export type { Killer, KillerName, KillerTable } from "./killer.ts";
export { EvictionManager, type EvictionManagerOptions } from "./manager.ts";
export { NodeTainter, type NodeTainterOptions } from "./node-tainter.ts";
export { type EncodablePod, type ObservedPod, observeJson, type PodDetails } from "./observed-pod.ts";
export { OomEvents } from "./oom-events.ts";
export type { EvictionStep, Evictor, NodePods, Tainter } from "./parts.ts";
export { EvictionPlugins, type EvictionPluginsOptions } from "./plugins.ts";
export type { ContainerExit, PodEnding } from "./pod-ending.ts";
export { namingNode } from "./pod-events.ts";
export { type NodePod, PodHistory, type PodHistoryOptions } from "./pod-history.ts";
export { PodWatch, type PodWatchOptions } from "./pod-watch.ts";
export type { EvictionPod, PodOwner, PodReference, QosClass, QosLevel } from "./pods.ts";
export { defaultEvictionPolicy, type EvictionPolicy } from "./policy.ts";
export { type HistoryLine, importLine } from "./record-lines.ts";
export { RecordQueries } from "./record-queries.ts";
export { EvictionRecords, type EvictionRecordsOptions } from "./records.ts";
export { type RefusalReason, refusalReasons } from "./refusals.ts";
export {
  addToReplay,
  emptyReplay,
  type Replay,
  type ReplayedRound,
  type ReplayedVictim,
} from "./replay.ts";
export type { DecideInput, EvictionOutcome, RoundInput } from "./round.ts";
export { createEvictionRoundMetrics, type EvictionRoundMetrics } from "./round-metrics.ts";
export type { RoundRecord } from "./round-record.ts";
export { defaultEvictionSettings, type EvictionSettings } from "./round-settings.ts";
export type { RoundSummary } from "./round-summary.ts";
export type { EvictionPluginStatus } from "./served-plugin.ts";
export type { EvictionSource } from "./source.ts";
export { type EvictionState, emptyEvictionState } from "./state.ts";
export { storedTaints } from "./stored-taints.ts";
export { createTaintMetrics, type TaintMetrics } from "./taint-metrics.ts";
export type {
  ConditionProblem,
  ConditionProblemReason,
  CustomNodeResourceTaint,
  NodeTaint,
  WantedTaints,
} from "./taints.ts";
export { ThresholdSampler, type ThresholdSamplerOptions } from "./threshold-sampler.ts";
export { thresholdText } from "./threshold-text.ts";
export { reviewedTokens, type TokenCheck } from "./token-check.ts";
