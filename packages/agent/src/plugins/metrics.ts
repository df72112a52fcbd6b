import { metricTable, type Registry } from "@nodekeeper/core/lib";

export type PluginMetrics = ReturnType<typeof createPluginMetrics>;

/**
 * The module's metrics. The label `type` is a type with a handler, or "unknown", so that plugins cannot
 * create series.
 * @param sockets returns the known sockets at each scrape
 */
export function createPluginMetrics(
  registry: Registry,
  sockets: () => Iterable<{ type: string; state: string }> = () => [],
) {
  const { counter, histogram, scrapedBy } = metricTable(registry, "nodekeeper_plugins_");
  scrapedBy("plugins", "Number of plugin sockets by plugin type and state.", ["type", "state"], () => {
    const groups = Map.groupBy(sockets(), ({ type, state }) => `${type} ${state}`);
    return [...groups.values()].map((group) => [group[0]!, group.length]);
  });
  return {
    registrations: counter(
      "registrations_total",
      "Number of registration attempts by plugin type and result (registered, refused, failed).",
      ["type", "result"],
    ),
    deregistrations: counter(
      "deregistrations_total",
      "Number of registrations that ended, by plugin type and reason.",
      ["type", "reason"],
    ),
    refusals: counter("refusals_total", "Number of refused registration attempts by the ID of the error.", [
      "error",
    ]),
    displaced: counter(
      "displaced_total",
      "Number of lost plugins whose grace period ended early because their user or directory had too many, by plugin type.",
      ["type"],
    ),
    scanSeconds: histogram(
      "scan_duration_seconds",
      "Duration of a scan of the watched directories.",
      [0.01, 0.1, 1],
    ),
    probeFailures: counter(
      "probe_failures_total",
      "Number of failed liveness probes of plugin sockets by result (refused, missing, unknown).",
      ["result"],
    ),
  };
}
