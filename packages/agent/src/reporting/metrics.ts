import { Counter, errorCodes, Gauge, Histogram, type Registry } from "@nodekeeper/core/lib";
import { collectMethods } from "./collect.ts";
import { problemReasons } from "./content.ts";

/** The metrics of reporting. Names of plugins that were dropped are removed by `forgetPlugin`. */
export function createReportingMetrics(registry: Registry) {
  const registers = [registry];
  return {
    messages: new Counter({
      name: "nodekeeper_reporting_messages_total",
      help: "Messages received from reporter plugins.",
      labelNames: ["plugin"],
      registers,
    }),
    throttled: new Counter({
      name: "nodekeeper_reporting_throttled_total",
      help: "Times a plugin's stream was held back because it sent too much.",
      labelNames: ["plugin"],
      registers,
    }),
    failures: new Counter({
      name: "nodekeeper_reporting_call_failures_total",
      help: "Failed calls to reporter plugins.",
      labelNames: ["plugin", "method", "code"],
      registers,
    }),
    problems: new Counter({
      name: "nodekeeper_reporting_rejected_fields_total",
      help: "Fields of plugins' messages that were not taken.",
      labelNames: ["plugin", "reason"],
      registers,
    }),
    endpoints: new Gauge({
      name: "nodekeeper_reporting_endpoints",
      help: "Reporter plugins by state.",
      labelNames: ["state"],
      registers,
    }),
    dropped: new Counter({
      name: "nodekeeper_reporting_endpoints_dropped_total",
      help: "Lost plugins whose grace period ended, so that their content was dropped.",
      registers,
    }),
    conflicts: new Gauge({
      name: "nodekeeper_reporting_merge_conflicts",
      help: "Places of which plugins say different things, by object.",
      labelNames: ["object"],
      registers,
    }),
    writes: new Counter({
      name: "nodekeeper_reporting_writes_total",
      help: "Writes to the API server by object, part and result (ok, or an error code).",
      labelNames: ["object", "part", "result"],
      registers,
    }),
    repairs: new Counter({
      name: "nodekeeper_reporting_repairs_total",
      help: "Times published fields had been changed or deleted by somebody else and were applied again.",
      labelNames: ["object"],
      registers,
    }),
    quarantined: new Gauge({
      name: "nodekeeper_reporting_quarantined",
      help: "Plugins whose content the API server refuses or has no room for, by object.",
      labelNames: ["object"],
      registers,
    }),
    heldBack: new Counter({
      name: "nodekeeper_reporting_held_back_total",
      help: "Times a plugin's content was held back because an object would have been too large with it.",
      labelNames: ["plugin"],
      registers,
    }),
    age: new Gauge({
      name: "nodekeeper_reporting_content_age_seconds",
      help: "Time since a plugin last gave its content, changed or not. Lost plugins' content ages until it is dropped.",
      labelNames: ["plugin"],
      registers,
    }),
    unclaimed: new Gauge({
      name: "nodekeeper_reporting_unclaimed_fields",
      help: "Fields that an earlier agent published and no known plugin reports, by object. Kept for the grace period.",
      labelNames: ["object"],
      registers,
    }),
    delay: new Histogram({
      name: "nodekeeper_reporting_change_to_write_seconds",
      help: "From a plugin's change to the API server's answer to the write that carries it.",
      buckets: [0.01, 0.025, 0.05, 0.1, 0.2, 0.25, 0.3, 0.5, 1, 2.5, 10, 60],
      registers,
    }),
    checkpointFailures: new Counter({
      name: "nodekeeper_reporting_checkpoint_failures_total",
      help: "Checkpoints that could not be written.",
      registers,
    }),
  };
}

export type ReportingMetrics = ReturnType<typeof createReportingMetrics>;

/** Removes what is counted of one plugin, so that names which come and go do not pile up. */
export function forgetPlugin(metrics: ReportingMetrics, plugin: string): void {
  metrics.messages.remove({ plugin });
  metrics.throttled.remove({ plugin });
  metrics.heldBack.remove({ plugin });
  for (const reason of problemReasons) metrics.problems.remove({ plugin, reason });
  for (const method of collectMethods)
    for (const code of Object.keys(errorCodes)) metrics.failures.remove({ plugin, method, code });
}
