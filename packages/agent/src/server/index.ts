export type { JsonRoute } from "./api.ts";
export { createBaseMetrics } from "./base-metrics.ts";
export { type AccessCheck, delegatedAccess } from "./delegated-access.ts";
export { evictionRoutes, type HistoryPage, type RecordPage } from "./eviction-routes.ts";
export { LifecycleService, type LifecycleServiceOptions } from "./lifecycle-service.ts";
export { LocalApi, type LocalApiOptions } from "./local-api.ts";
export { createLocalApiMetrics } from "./local-api-metrics.ts";
export { createHealthMetrics, createServerMetrics } from "./metrics.ts";
export { listPlugins, type PluginRow } from "./plugin-list.ts";
export { ServingCertificate } from "./serving-certificate.ts";
export {
  createStatusServer,
  type RemoteAccess,
  type StatusServer,
  type StatusServerOptions,
} from "./status-server.ts";
export { lifecycleDefinition } from "./watch-answers.ts";
