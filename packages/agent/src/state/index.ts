export { ClaimStore, type StoredClaim } from "./claim-store.ts";
export type { Consequence } from "./consequence.ts";
export { StateDatabase, type StateDatabaseOptions } from "./database.ts";
export {
  EvictionStore,
  type NewRound,
  type RecordBounds,
  type RoundSpan,
  type StoredRound,
  type StoredStep,
} from "./eviction-store.ts";
export {
  type HistoryBounds,
  type HistoryChange,
  HistoryStore,
  type StoredNodeEvent,
  type StoredNodePod,
} from "./history-store.ts";
export { LifecycleStore, type StoredEvent, type StoredRecord } from "./lifecycle-store.ts";
export { type Mark, type MarkKind, Marks, markKinds, type NewMark } from "./marks.ts";
export { createStateMetrics } from "./metrics.ts";
export type { StoredCoverage } from "./record-coverage.ts";
export { type LastGoodPart, ReporterStore, type StoredContent } from "./reporter-store.ts";
export { SignOfLife } from "./sign-of-life.ts";
export { StateCopy } from "./state-copy.ts";
