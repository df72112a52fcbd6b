import { metricTable, type Registry } from "@nodekeeper/core/lib";

export type ReloadOutcome = "applied" | "unchanged" | "rejected";

export type ConfigMetrics = ReturnType<typeof createConfigMetrics>;

/** Metrics of configuration reloads. */
export function createConfigMetrics(registry: Registry) {
  const { counter, gauge } = metricTable(registry, "nodekeeper_config_");
  const reloads = counter(
    "reloads_total",
    "Number of configuration reloads by outcome: applied, unchanged or rejected.",
    ["outcome"],
  );
  const last = gauge(
    "last_reload_timestamp_seconds",
    "Time of the last configuration reload by outcome, in seconds since the epoch.",
    ["outcome"],
  );
  return {
    /** @param at wall clock time, milliseconds since the epoch */
    reloaded(outcome: ReloadOutcome, at: number): void {
      reloads.inc({ outcome });
      last.set({ outcome }, at / 1000);
    },
  };
}
