export {
  type ArchiveGap,
  type ArchiveKind,
  ArchiveStore,
  type QueueBounds,
  type QueuedRecord,
} from "./archive-store.ts";
export { ClaimStatusStore, type StoredClaimStatus } from "./claim-status-store.ts";
export { ClaimStore, type StoredClaim } from "./claim-store.ts";
export { StateDatabase, type StateDatabaseOptions } from "./database.ts";
export { DirectoryLock } from "./directory-lock.ts";
export {
  EvictionStore,
  type NewRound,
  type RecordBounds,
  type RoundSpan,
  type StoredRound,
  type StoredStep,
} from "./eviction-store.ts";
export { askForHandover, canOfferHandover, offerHandover } from "./handover.ts";
export {
  type HistoryBounds,
  type HistoryChange,
  HistoryStore,
  type StoredNodeEvent,
  type StoredNodePod,
} from "./history-store.ts";
export { LifecycleStore, type StoredRecord } from "./lifecycle-store.ts";
export { type Mark, Marks, type NewMark } from "./marks.ts";
export { createStateMetrics } from "./metrics.ts";
export { PluginNameStore, type StoredPluginName } from "./plugin-name-store.ts";
export type { StoredCoverage } from "./record-coverage.ts";
export { type LastGoodPart, ReporterStore, type StoredContent } from "./reporter-store.ts";
export type { Consequence } from "./round-usage.ts";
export { SignOfLife } from "./sign-of-life.ts";
export {
  MOST_MINUTES,
  SignalStore,
  type StoredMinute,
  type StoredReading,
  type StoredSignal,
} from "./signal-store.ts";
export { StateCopy } from "./state-copy.ts";
export { Backlog, WriteBehind } from "./write-behind.ts";
