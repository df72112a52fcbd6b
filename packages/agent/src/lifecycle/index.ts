// Pod lifecycle events and statuses, as in the kubelet's pkg/kubelet/pleg. Terms:
// relist: lists all pods and inspects those that changed; reading: a list and an inspection of one pod.
// record: the last emitted state of a pod; transition: a difference between two readings.
// event: a transition in the event log, with a sequence number; cursor: a position in the log.
// snapshot: the state of all pods, for consumers that start or fell behind the retained events.
// hint: a container event of the runtime, which only names the pod to read; miss: a change without a hint.
// stale: the status of a pod whose last inspection failed.
export type { PodCacheEntry, PodStatusReader } from "./cache.ts";
export { beforeAnyLog, formatCursor, type LogPosition, parseCursor } from "./cursor.ts";
export type { EventLog, EventSource, ReadOptions } from "./event-log.ts";
export type { LogReader } from "./event-reader.ts";
export type { PodLifecycleEvent, PodLifecycleEventType } from "./events.ts";
export { PodLifecycleEventGenerator, type PodLifecycleEventGeneratorOptions } from "./generator.ts";
export type { LogItem } from "./log-item.ts";
export type { LifecycleSettings } from "./settings.ts";
