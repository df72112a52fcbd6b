export type { JsonRoute } from "./api.ts";
export { createBaseMetrics } from "./base-metrics.ts";
export { evictionRoutes, type RecordPage } from "./eviction-routes.ts";
export { LifecycleService, type LifecycleServiceOptions } from "./lifecycle-service.ts";
export { LocalApi, type LocalApiOptions } from "./local-api.ts";
export { listPlugins, type PluginRow } from "./plugin-list.ts";
export { createStatusServer, type StatusServer, type StatusServerOptions } from "./status-server.ts";
