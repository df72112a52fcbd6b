export type { PodCacheEntry, PodStatusReader } from "./cache.ts";
export { formatCursor, type LogPosition, parseCursor } from "./cursor.ts";
export type { EventLog, EventSource, ReadOptions } from "./event-log.ts";
export type { LogReader } from "./event-reader.ts";
export type { ContainerIdentity, PodIdentity, PodLifecycleEvent, PodLifecycleEventType } from "./events.ts";
export { PodLifecycleEventGenerator, type PodLifecycleEventGeneratorOptions } from "./generator.ts";
export type { LogItem } from "./log-item.ts";
export type { LifecycleSettings } from "./settings.ts";
