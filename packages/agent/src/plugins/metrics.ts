import { Counter, Gauge, Histogram, type Registry } from "@nodekeeper/core/lib";

export type PluginMetrics = ReturnType<typeof createPluginMetrics>;

/** The module's metrics. The label `type` is a type with a handler, or "unknown", so that plugins cannot create series. */
export function createPluginMetrics(registry: Registry) {
  const registers = [registry];
  return {
    registrations: new Counter({
      name: "nodekeeper_plugins_registrations_total",
      help: "Number of registration attempts by plugin type and result (registered, refused, failed).",
      labelNames: ["type", "result"] as const,
      registers,
    }),
    deregistrations: new Counter({
      name: "nodekeeper_plugins_deregistrations_total",
      help: "Number of registrations that ended, by plugin type and reason.",
      labelNames: ["type", "reason"] as const,
      registers,
    }),
    plugins: new Gauge({
      name: "nodekeeper_plugins_plugins",
      help: "Number of plugin sockets by plugin type and state.",
      labelNames: ["type", "state"] as const,
      registers,
    }),
    scanSeconds: new Histogram({
      name: "nodekeeper_plugins_scan_duration_seconds",
      help: "Duration of a scan of the watched directories.",
      buckets: [0.01, 0.1, 1],
      registers,
    }),
    probeFailures: new Counter({
      name: "nodekeeper_plugins_probe_failures_total",
      help: "Number of failed liveness probes of plugin sockets by result (refused, missing, unknown).",
      labelNames: ["result"] as const,
      registers,
    }),
  };
}
