export type { ReporterStatus } from "./endpoint.ts";
export { customNodeResource, kindKey, kindPolicies, node } from "./kinds.ts";
export { ReporterManager } from "./manager.ts";
export type { ReporterManagerOptions } from "./manager-options.ts";
export { createReportingMetrics, type ReportingMetrics } from "./metrics.ts";
export type { ObjectStatus } from "./object-writer.ts";
export type { PublisherOptions } from "./publish-options.ts";
export { Publisher } from "./publisher.ts";
export type { ReporterSource } from "./source.ts";
