import { Gauge, type Registry } from "@nodekeeper/core/lib";
import type { StateDatabase } from "./database.ts";

/** Registers `nodekeeper_state_persistent`, which is read from the database at each scrape. */
export function createStateMetrics(registry: Registry, database: StateDatabase): void {
  const { check } = database.healthCheck();
  new Gauge({
    name: "nodekeeper_state_persistent",
    help: "1 while the state database survives the agent, 0 while it is kept in memory or its file was removed.",
    registers: [registry],
    collect() {
      this.set(check().ok ? 1 : 0);
    },
  });
}
