import { Counter, type Logger, type Registry } from "@nodekeeper/core/lib";
import { type Reading, readingProblem } from "../../host/index.ts";

/** How often a plugin could not decide for want of a reading. */
export interface InTreeEvictionMetrics {
  missingReadings: Counter<"plugin" | "reading">;
}

/** One of them for each registry. */
export function createInTreeEvictionMetrics(registry: Registry): InTreeEvictionMetrics {
  return {
    missingReadings: new Counter({
      name: "nodekeeper_intree_missing_readings_total",
      help: "Readings that an in-tree eviction plugin needed and that were missing, stale or failed",
      labelNames: ["plugin", "reading"],
      registers: [registry],
    }),
  };
}

/** Counts what one plugin could not read, and says so once when it begins and once when it ends. */
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

  /** The value of a reading, or undefined where there is none. @param name "memory": for logs and metrics */
  valueOf<T>(name: string, reading: Reading<T>): T | undefined {
    const problem = readingProblem(reading);
    const known = this.#missing.has(name);
    if (reading.state === "read") {
      if (known) this.#log.info({ plugin: this.#plugin, reading: name }, "eviction plugin reads again");
      this.#missing.delete(name);
      return reading.value;
    }
    this.#metrics.missingReadings.inc({ plugin: this.#plugin, reading: name });
    if (!known) {
      this.#log.warn(
        { plugin: this.#plugin, reading: name, problem },
        "eviction plugin can't read, it evicts no pod for it",
      );
    }
    this.#missing.add(name);
    return undefined;
  }
}
