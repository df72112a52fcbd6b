import { Counter, type Logger, type Registry } from "@nodekeeper/core/lib";
import { type Reading, readingProblem } from "../../host/index.ts";

/** Counts missing readings of in-tree eviction plugins. */
export interface InTreeEvictionMetrics {
  missingReadings: Counter<"plugin" | "reading">;
}

/** Create one for each registry. */
export function createInTreeEvictionMetrics(registry: Registry): InTreeEvictionMetrics {
  return {
    missingReadings: new Counter({
      name: "nodekeeper_intree_missing_readings_total",
      help: "Number of readings that were missing, stale or failed when an in-tree eviction plugin needed them.",
      labelNames: ["plugin", "reading"],
      registers: [registry],
    }),
  };
}

/** Counts the missing readings of one plugin, and logs when a reading becomes missing and available again. */
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

  /** The value of a reading; undefined if it is missing. @param name name for logs and metrics, such as "memory" */
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
        { errorId: "NK1612", plugin: this.#plugin, reading: name, problem },
        "reading of eviction plugin missing, it evicts no pod without it",
      );
    }
    this.#missing.add(name);
    return undefined;
  }
}
