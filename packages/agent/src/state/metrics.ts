import { metricTable, type Registry } from "@nodekeeper/core/lib";
import type { StateDatabase } from "./database.ts";

/** Registers `nodekeeper_state_persistent`, which runs the database's health check at each scrape. */
export function createStateMetrics(registry: Registry, database: StateDatabase): void {
  const { check } = database.healthCheck();
  metricTable(registry, "nodekeeper_state_").scraped(
    "persistent",
    "1 while the state database survives the agent, 0 while it is kept in memory or its file was removed.",
    () => (check().ok ? 1 : 0),
  );
}
