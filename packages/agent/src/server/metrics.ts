import { type HealthCheck, metricTable, type Registry } from "@nodekeeper/core/lib";
import { runCheck } from "./health.ts";

/** Metrics of the status server. Values of `handler` are known paths or "other". */
export function createServerMetrics(registry: Registry) {
  const { counter, histogram } = metricTable(registry, "nodekeeper_server_");
  return {
    requests: counter("requests_total", "Requests to the status server, by handler and HTTP status.", [
      "handler",
      "code",
    ]),
    duration: histogram(
      "request_duration_seconds",
      "Time from a request to its response.",
      [0.01, 0.1, 1, 10],
    ),
    cutStreams: counter(
      "streams_cut_total",
      "Streams of server-sent events that ended because the client did not read them.",
    ),
    refusedConnections: counter(
      "refused_connections_total",
      "Connections closed at the connection limit: the least recently used idle one.",
    ),
  };
}

export type ServerMetrics = ReturnType<typeof createServerMetrics>;

/** Registers a gauge for alerts: the result of each check of /readyz, evaluated on each scrape. */
export function createHealthMetrics(registry: Registry, checks: readonly HealthCheck[]): void {
  metricTable(registry, "nodekeeper_server_").scrapedBy(
    "health_check",
    "Whether a check of /readyz passes: 1 or 0.",
    ["check"],
    () => checks.map((check) => [{ check: check.name }, runCheck(check).ok ? 1 : 0]),
  );
}

/** Creates the counter of refused watches of the local API. */
export function createRefusedWatches(registry: Registry) {
  return metricTable(registry, "nodekeeper_server_").counter(
    "watches_refused_total",
    "Watches of pod lifecycle events that were refused because too many were open.",
  );
}
