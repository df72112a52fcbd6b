import { ReadingMissing } from "@nodekeeper/api/errors";
import { type Logger, metricTable, type Registry } from "@nodekeeper/core/lib";
import { type Reading, readingProblem } from "../../host/index.ts";

/** Metrics of in-tree eviction plugins. Create one per registry. */
export function createInTreeEvictionMetrics(registry: Registry) {
  const { counter } = metricTable(registry, "nodekeeper_intree_");
  return {
    missingReadings: counter(
      "missing_readings_total",
      "Number of readings that were missing, stale or failed when an in-tree eviction plugin needed them.",
      ["plugin", "reading"],
    ),
  };
}

export type InTreeEvictionMetrics = ReturnType<typeof createInTreeEvictionMetrics>;

/**
 * Returns a function that returns the value of a reading; undefined if it is missing. Counts the missing readings of
 * one plugin, and logs when a reading becomes missing or available again. The name is for logs and metrics, such as
 * "memory".
 */
export function readingValues(plugin: string, log: Logger, { missingReadings }: InTreeEvictionMetrics) {
  const missing = new Set<string>();
  return <T>(name: string, reading: Reading<T>): T | undefined => {
    if (reading.state === "read") {
      if (missing.delete(name))
        log.info({ plugin, reading: name }, "reading of eviction plugin available again");
      return reading.value;
    }
    missingReadings.inc({ plugin, reading: name });
    if (missing.has(name)) return undefined;
    missing.add(name);
    const fields = { errorId: ReadingMissing.id, plugin, reading: name, problem: readingProblem(reading) };
    log.warn(fields, "reading is missing, the eviction plugin selects no pods until it is available");
    return undefined;
  };
}
