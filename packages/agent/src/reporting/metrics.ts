import { errorCodes, metricTable, type Registry } from "@nodekeeper/core/lib";
import { collectMethods } from "./collect.ts";
import { problemReasons } from "./content.ts";

/**
 * Creates the metrics of reporting. `forgetPlugin` removes the series of a dropped plugin.
 * @param contentAges called on each scrape
 */
export function createReportingMetrics(
  registry: Registry,
  contentAges: () => Iterable<readonly [plugin: string, seconds: number]> = () => [],
) {
  const { counter, gauge, histogram, scrapedBy } = metricTable(registry, "nodekeeper_reporting_");
  scrapedBy(
    "content_age_seconds",
    "Time since a plugin last sent its content, changed or not.",
    ["plugin"],
    () => [...contentAges()].map(([plugin, seconds]) => [{ plugin }, seconds]),
  );
  return {
    messages: counter("messages_total", "Number of messages received from reporter plugins.", ["plugin"]),
    throttled: counter(
      "throttled_total",
      "Number of times a plugin's stream was throttled because it sent too much.",
      ["plugin"],
    ),
    failures: counter("call_failures_total", "Number of failed calls to reporter plugins.", [
      "plugin",
      "method",
      "code",
    ]),
    problems: counter(
      "rejected_fields_total",
      "Number of invalid fields in plugins' messages, which are not published.",
      ["plugin", "reason"],
    ),
    endpoints: gauge(
      "endpoints",
      "Number of reporter plugins by state: running, or stopped and in their grace period.",
      ["state"],
    ),
    dropped: counter(
      "endpoints_dropped_total",
      "Number of disconnected plugins whose content was withdrawn at the end of their grace period.",
    ),
    conflicts: gauge(
      "merge_conflicts",
      "Number of paths for which plugins report different values, by object.",
      ["object"],
    ),
    writes: counter(
      "writes_total",
      "Number of writes to the API server by object, part and result (ok, or an error code).",
      ["object", "part", "result"],
    ),
    repairs: counter(
      "repairs_total",
      "Number of times published fields were applied again because another client had changed or deleted them.",
      ["object"],
    ),
    quarantined: gauge(
      "quarantined",
      "Number of plugins whose content is quarantined because the API server rejects it or the object would be too large, by object.",
      ["object"],
    ),
    oversized: counter(
      "oversized_total",
      "Number of times a plugin's content was quarantined because the object would have been too large.",
      ["plugin"],
    ),
    unclaimed: gauge(
      "unclaimed_fields",
      "Number of fields published by an earlier agent process that no plugin reports, by object. They are kept for the grace period.",
      ["object"],
    ),
    delay: histogram(
      "change_to_write_seconds",
      "Time from a plugin's change to the completed write to the API server.",
      [0.1, 0.3, 1, 10, 60],
    ),
    checkpointFailures: counter("checkpoint_failures_total", "Number of failed writes of the checkpoint."),
  };
}

export type ReportingMetrics = ReturnType<typeof createReportingMetrics>;

/** Removes the series of one plugin. */
export function forgetPlugin(metrics: ReportingMetrics, plugin: string): void {
  metrics.messages.remove({ plugin });
  metrics.throttled.remove({ plugin });
  metrics.oversized.remove({ plugin });
  for (const reason of problemReasons) metrics.problems.remove({ plugin, reason });
  for (const method of collectMethods)
    for (const code of Object.keys(errorCodes)) metrics.failures.remove({ plugin, method, code });
}
