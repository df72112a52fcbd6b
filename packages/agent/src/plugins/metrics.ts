import { Counter, Gauge, Histogram, type Registry } from "@nodekeeper/core/lib";

export type PluginMetrics = ReturnType<typeof createPluginMetrics>;

/** The room's metrics. `type` is a type some handler takes, or "unknown", so that plugins can't mint labels. */
export function createPluginMetrics(registry: Registry) {
  const registers = [registry];
  return {
    registrations: new Counter({
      name: "nodekeeper_plugins_registrations_total",
      help: "Registration attempts by plugin type and result (registered, refused, failed).",
      labelNames: ["type", "result"] as const,
      registers,
    }),
    deregistrations: new Counter({
      name: "nodekeeper_plugins_deregistrations_total",
      help: "Registrations that ended, by plugin type and reason.",
      labelNames: ["type", "reason"] as const,
      registers,
    }),
    plugins: new Gauge({
      name: "nodekeeper_plugins_plugins",
      help: "Plugin sockets by plugin type and state.",
      labelNames: ["type", "state"] as const,
      registers,
    }),
    scanSeconds: new Histogram({
      name: "nodekeeper_plugins_scan_duration_seconds",
      help: "Time to walk the watched directories.",
      buckets: [0.001, 0.005, 0.02, 0.1, 0.5, 2],
      registers,
    }),
    probeFailures: new Counter({
      name: "nodekeeper_plugins_probe_failures_total",
      help: "Liveness probes of plugin sockets that did not connect, by what they found (refused, missing, unknown).",
      labelNames: ["result"] as const,
      registers,
    }),
  };
}
