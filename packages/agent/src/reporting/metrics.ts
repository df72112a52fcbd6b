import { Counter, errorCodes, Gauge, Histogram, type Registry } from "@nodekeeper/core/lib";
import { collectMethods } from "./collect.ts";
import { problemReasons } from "./content.ts";

/** The metrics of reporting. `forgetPlugin` removes the series of a plugin that was dropped. */
export function createReportingMetrics(registry: Registry) {
  const registers = [registry];
  return {
    messages: new Counter({
      name: "nodekeeper_reporting_messages_total",
      help: "Number of messages received from reporter plugins.",
      labelNames: ["plugin"],
      registers,
    }),
    throttled: new Counter({
      name: "nodekeeper_reporting_throttled_total",
      help: "Number of times a plugin's stream was throttled because it sent too much.",
      labelNames: ["plugin"],
      registers,
    }),
    failures: new Counter({
      name: "nodekeeper_reporting_call_failures_total",
      help: "Number of failed calls to reporter plugins.",
      labelNames: ["plugin", "method", "code"],
      registers,
    }),
    problems: new Counter({
      name: "nodekeeper_reporting_rejected_fields_total",
      help: "Number of invalid fields in plugins' messages, which are not published.",
      labelNames: ["plugin", "reason"],
      registers,
    }),
    endpoints: new Gauge({
      name: "nodekeeper_reporting_endpoints",
      help: "Number of reporter plugins by state: running, or stopped and in their grace period.",
      labelNames: ["state"],
      registers,
    }),
    dropped: new Counter({
      name: "nodekeeper_reporting_endpoints_dropped_total",
      help: "Number of disconnected plugins whose content was withdrawn at the end of their grace period.",
      registers,
    }),
    conflicts: new Gauge({
      name: "nodekeeper_reporting_merge_conflicts",
      help: "Number of paths for which plugins report different values, by object.",
      labelNames: ["object"],
      registers,
    }),
    writes: new Counter({
      name: "nodekeeper_reporting_writes_total",
      help: "Number of writes to the API server by object, part and result (ok, or an error code).",
      labelNames: ["object", "part", "result"],
      registers,
    }),
    repairs: new Counter({
      name: "nodekeeper_reporting_repairs_total",
      help: "Number of times published fields were applied again because another client had changed or deleted them.",
      labelNames: ["object"],
      registers,
    }),
    quarantined: new Gauge({
      name: "nodekeeper_reporting_quarantined",
      help: "Number of plugins whose content is quarantined because the API server rejects it or the object would be too large, by object.",
      labelNames: ["object"],
      registers,
    }),
    oversized: new Counter({
      name: "nodekeeper_reporting_oversized_total",
      help: "Number of times a plugin's content was quarantined because the object would have been too large.",
      labelNames: ["plugin"],
      registers,
    }),
    age: new Gauge({
      name: "nodekeeper_reporting_content_age_seconds",
      help: "Time since a plugin last sent its content, changed or not.",
      labelNames: ["plugin"],
      registers,
    }),
    unclaimed: new Gauge({
      name: "nodekeeper_reporting_unclaimed_fields",
      help: "Number of fields published by an earlier agent process that no plugin reports, by object. They are kept for the grace period.",
      labelNames: ["object"],
      registers,
    }),
    delay: new Histogram({
      name: "nodekeeper_reporting_change_to_write_seconds",
      help: "Time from a plugin's change to the completed write to the API server.",
      buckets: [0.1, 0.3, 1, 10, 60],
      registers,
    }),
    checkpointFailures: new Counter({
      name: "nodekeeper_reporting_checkpoint_failures_total",
      help: "Number of failed writes of the checkpoint.",
      registers,
    }),
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
