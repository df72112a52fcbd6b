import { Counter, Histogram, type Registry } from "@nodekeeper/core/lib";

export interface ServerMetrics {
  /** Labels: handler (a known path or "other"), code (HTTP status). */
  requests: Counter<"handler" | "code">;
  duration: Histogram<"handler">;
  refusedConnections: Counter;
}

export function createServerMetrics(registry: Registry): ServerMetrics {
  const registers = [registry];
  return {
    requests: new Counter({
      name: "nodekeeper_server_requests_total",
      help: "Requests to the status server, by handler and HTTP status.",
      labelNames: ["handler", "code"],
      registers,
    }),
    duration: new Histogram({
      name: "nodekeeper_server_request_duration_seconds",
      help: "Time from a request to its answer.",
      labelNames: ["handler"],
      buckets: [0.001, 0.01, 0.1, 1, 10],
      registers,
    }),
    refusedConnections: new Counter({
      name: "nodekeeper_server_refused_connections_total",
      help: "Connections closed because too many were open: the idle one that was used longest ago.",
      registers,
    }),
  };
}
