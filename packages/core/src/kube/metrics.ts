import { Counter, Histogram, type Registry } from "../lib/index.ts";

/** Metrics of access to the API server. */
export interface KubeMetrics {
  requests: Counter<"verb" | "resource" | "code">;
  requestDuration: Histogram<"verb">;
  rateLimiterWait: Counter;
  watchRestarts: Counter<"resource" | "reason">;
  watchEvents: Counter<"resource" | "type">;
  watchHandlerErrors: Counter<"resource">;
  events: Counter<"result">;
}

/** Registers the metrics; once for each registry. */
export function createKubeMetrics(registry: Registry): KubeMetrics {
  const registers = [registry];
  return {
    requests: new Counter({
      name: "nodekeeper_kube_requests_total",
      help: "Requests to the API server, by verb, resource and HTTP status; without an answer, by error code.",
      labelNames: ["verb", "resource", "code"],
      registers,
    }),
    requestDuration: new Histogram({
      name: "nodekeeper_kube_request_duration_seconds",
      help: "Time from sending a request to the API server to the end of its answer; for watches, to its start.",
      labelNames: ["verb"],
      buckets: [0.05, 0.25, 1, 5],
      registers,
    }),
    rateLimiterWait: new Counter({
      name: "nodekeeper_kube_rate_limiter_wait_seconds_total",
      help: "Time that requests waited for the client's own rate limit.",
      registers,
    }),
    watchRestarts: new Counter({
      name: "nodekeeper_kube_watch_restarts_total",
      help: "Watches that ended and were restarted, by what ended them.",
      labelNames: ["resource", "reason"],
      registers,
    }),
    watchEvents: new Counter({
      name: "nodekeeper_kube_watch_events_total",
      help: "Watch events received, by type; whole lists count as REPLACE.",
      labelNames: ["resource", "type"],
      registers,
    }),
    watchHandlerErrors: new Counter({
      name: "nodekeeper_kube_watch_handler_errors_total",
      help: "Watch events whose handler threw.",
      labelNames: ["resource"],
      registers,
    }),
    events: new Counter({
      name: "nodekeeper_kube_events_total",
      help: "Kubernetes Events recorded, by what became of them: created, repeated, limited, dropped or failed.",
      labelNames: ["result"],
      registers,
    }),
  };
}
