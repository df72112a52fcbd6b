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

/** Counts the missing readings of one plugin, and logs when a reading becomes missing or available again. */
export class MissingReadings {
  readonly #plugin: string;
  readonly #log: Logger;
  readonly #metrics: InTreeEvictionMetrics;
  readonly #missing = new Set<string>();

  constructor(plugin: string, log: Logger, metrics: InTreeEvictionMetrics) {
    this.#plugin = plugin;
    this.#log = log;
    this.#metrics = metrics;
  }

  /**
   * Returns the value of a reading; undefined if it is missing.
   * @param name name for logs and metrics, such as "memory"
   */
  valueOf<T>(name: string, reading: Reading<T>): T | undefined {
    const problem = readingProblem(reading);
    const known = this.#missing.has(name);
    if (reading.state === "read") {
      if (known)
        this.#log.info({ plugin: this.#plugin, reading: name }, "reading of eviction plugin available again");
      this.#missing.delete(name);
      return reading.value;
    }
    this.#metrics.missingReadings.inc({ plugin: this.#plugin, reading: name });
    if (!known) {
      this.#log.warn(
        { errorId: ReadingMissing.id, plugin: this.#plugin, reading: name, problem },
        "reading of eviction plugin missing, it evicts no pod without it",
      );
    }
    this.#missing.add(name);
    return undefined;
  }
}
