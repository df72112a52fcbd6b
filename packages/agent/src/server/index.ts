export type { JsonRoute } from "./api.ts";
export { type ApiQueries, apiRoute, documentRoute, unservedRoutes } from "./api-route.ts";
export { createBaseMetrics } from "./base-metrics.ts";
export { type AccessCheck, delegatedAccess } from "./delegated-access.ts";
export { deviceRoutes } from "./device-routes.ts";
export { evictionNowRoutes, evictionRoutes } from "./eviction-routes.ts";
export { runCheck } from "./health.ts";
export { isCrossSite, isHostAllowed } from "./host-guard.ts";
export { lifecycleRoutes } from "./lifecycle-routes.ts";
export { LifecycleService, type LifecycleServiceOptions } from "./lifecycle-service.ts";
export { LocalApi, type LocalApiOptions } from "./local-api.ts";
export { createHealthMetrics, createRefusedWatches, createServerMetrics } from "./metrics.ts";
export { PAGE_ROOT, pageDirectory, pageReply, prefersPage, type ReadPageFile } from "./page.ts";
export { pluginCalls } from "./plugin-calls.ts";
export { driverExchanges, exchangeRoute } from "./plugin-exchanges.ts";
export { type KnownPlugins, listPlugins } from "./plugin-list.ts";
export { errorReply, jsonReply, type Reply, textReply } from "./reply.ts";
export { commonHeaders, sendReply } from "./send-reply.ts";
export { ServingCertificate } from "./serving-certificate.ts";
export {
  type RemoteAccess,
  StatusServer,
  type StatusServerOptions,
} from "./status-server.ts";
export type { NumberedItems } from "./stream/numbered-items.ts";
export type { StreamedState } from "./stream/states.ts";
export { Streams } from "./stream/streams.ts";
export { lifecycleDefinition } from "./watch-answers.ts";
