export { StateDatabase, type StateDatabaseOptions } from "./database.ts";
export {
  EvictionStore,
  type NewRound,
  type RecordBounds,
  type StoredRound,
  type StoredStep,
} from "./eviction-store.ts";
export { LifecycleStore, type StoredEvent, type StoredRecord } from "./lifecycle-store.ts";
export { type PublishedPart, ReporterStore, type StoredContent } from "./reporter-store.ts";
