import { Counter, Gauge, type HealthCheck, Histogram, type Registry } from "@nodekeeper/core/lib";
import { runCheck } from "./health.ts";

export interface ServerMetrics {
  /** Labels: handler (a known path or "other"), code (HTTP status). */
  requests: Counter<"handler" | "code">;
  duration: Histogram;
  refusedConnections: Counter;
  cutStreams: Counter;
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
      buckets: [0.01, 0.1, 1, 10],
      registers,
    }),
    cutStreams: new Counter({
      name: "nodekeeper_server_streams_cut_total",
      help: "Streams of server-sent events that ended because the client did not read them.",
      registers,
    }),
    refusedConnections: new Counter({
      name: "nodekeeper_server_refused_connections_total",
      help: "Connections closed because too many were open: the idle one that was used longest ago.",
      registers,
    }),
  };
}

/** Registers a gauge for alerts: each check as /readyz has it, read when it is scraped. */
export function createHealthMetrics(registry: Registry, checks: readonly HealthCheck[]): void {
  new Gauge({
    name: "nodekeeper_server_health_check",
    help: "Whether a check of /readyz passes: 1 or 0.",
    labelNames: ["check"],
    registers: [registry],
    collect() {
      for (const check of checks) this.set({ check: check.name }, runCheck(check).ok ? 1 : 0);
    },
  });
}
