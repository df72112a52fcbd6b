import { Counter, Gauge, type Registry } from "@nodekeeper/core/lib";

export type ReloadOutcome = "applied" | "unchanged" | "rejected";

export interface ConfigMetrics {
  /** @param at wall time, milliseconds */
  reloaded(outcome: ReloadOutcome, at: number): void;
}

export function createConfigMetrics(registry: Registry): ConfigMetrics {
  const reloads = new Counter({
    name: "nodekeeper_config_reloads_total",
    help: "Reloads of the configuration by outcome.",
    labelNames: ["outcome"],
    registers: [registry],
  });
  const last = new Gauge({
    name: "nodekeeper_config_last_reload_timestamp_seconds",
    help: "When the configuration was last reloaded, by outcome; seconds since the epoch.",
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
