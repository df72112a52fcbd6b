import { metricTable, type Registry } from "../lib/index.ts";

/** Creates the metrics of API server access. Call it once per registry. */
export function createKubeMetrics(registry: Registry) {
  const { counter, histogram } = metricTable(registry, "nodekeeper_kube_");
  return {
    requests: counter(
      "requests_total",
      "Requests to the API server, by verb, resource and HTTP status; without a response, by error code. A response whose body is cut off or exceeds the deadline counts by its status.",
      ["verb", "resource", "code"],
    ),
    requestDuration: histogram(
      "request_duration_seconds",
      "Time from sending a request to the API server to its response headers.",
      [0.05, 0.25, 1, 5],
      ["verb"],
    ),
    rateLimiterWait: counter(
      "rate_limiter_wait_seconds_total",
      "Time that requests waited for the client's own rate limit.",
    ),
    watchRestarts: counter(
      "watch_restarts_total",
      "Watches that ended and were restarted, by the reason they ended.",
      ["resource", "reason"],
    ),
    watchEvents: counter(
      "watch_events_total",
      "Watch events received, by type; whole lists count as REPLACE.",
      ["resource", "type"],
    ),
    watchHandlerErrors: counter("watch_handler_errors_total", "Watch events whose handler threw.", [
      "resource",
    ]),
    events: counter(
      "events_total",
      "Kubernetes Events recorded, by outcome: created, repeated, limited, dropped or failed.",
      ["result"],
    ),
  };
}

export type KubeMetrics = ReturnType<typeof createKubeMetrics>;
