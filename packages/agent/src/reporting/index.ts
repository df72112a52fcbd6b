// Publishing of reporter plugins' reports. Terms:
//
// - report: the fields of objects that one plugin reports; content: the validated report.
// - object: what is published for one kind (`kindKey`), such as the CustomNodeResource; part: its main resource or
//   status.
// - endpoint: the state of one plugin, kept across its registrations; lost: disconnected, in its grace period.
// - merge: combining the reports of all plugins for one object; conflict: different values for one path.
// - quarantine: content that the server rejects or that is too large is replaced by the last known good content.
// - ownership: the fields of the agent's field manager (managedFields); contested: another client writes them
//   repeatedly.
// - unclaimed: fields published by an earlier agent process that no plugin reports.
export type { PublisherOptions, ReportingContext } from "./context.ts";
export type { ReporterStatus } from "./endpoint.ts";
export { fieldOrigins } from "./field-origins.ts";
export { customNodeResource, kindKey, kindPolicies, node, OWN_TAINTS } from "./kinds.ts";
export { ReporterManager, type ReporterManagerOptions } from "./manager.ts";
export { createReportingMetrics, type ReportingMetrics } from "./metrics.ts";
export type { ObjectStatus } from "./object-writer.ts";
export { Publisher } from "./publisher.ts";
export { type ReleaseOptions, releaseObject } from "./release.ts";
export type { ReporterSource } from "./source.ts";
export { lastTaintWriter, listedTaints, provenTaints } from "./taints.ts";
