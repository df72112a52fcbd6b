export type { JsonRoute } from "./api.ts";
export { createBaseMetrics } from "./base-metrics.ts";
export { listPlugins, type PluginRow } from "./plugin-list.ts";
export { createStatusServer, type StatusServer, type StatusServerOptions } from "./status-server.ts";
