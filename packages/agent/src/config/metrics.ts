import { Counter, Gauge, type Registry } from "@nodekeeper/core/lib";

export type ReloadOutcome = "applied" | "unchanged" | "rejected";

export interface ConfigMetrics {
  /** @param at wall clock time, milliseconds since the epoch */
  reloaded(outcome: ReloadOutcome, at: number): void;
}

export function createConfigMetrics(registry: Registry): ConfigMetrics {
  const reloads = new Counter({
    name: "nodekeeper_config_reloads_total",
    help: "Number of configuration reloads by outcome: applied, unchanged or rejected.",
    labelNames: ["outcome"],
    registers: [registry],
  });
  const last = new Gauge({
    name: "nodekeeper_config_last_reload_timestamp_seconds",
    help: "Time of the last configuration reload by outcome, in seconds since the epoch.",
    labelNames: ["outcome"],
    registers: [registry],
  });
  return {
    reloaded(outcome, at) {
      reloads.inc({ outcome });
      last.set({ outcome }, at / 1000);
    },
  };
}
