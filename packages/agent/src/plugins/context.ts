import type { AgentConfiguration } from "@nodekeeper/api/settings";
import type { Clock, Logger } from "@nodekeeper/core/lib";
import type { PluginMetrics } from "./metrics.ts";
import type { ScanLimits } from "./socket-scan.ts";
import type { PluginChange } from "./status.ts";
import type { PluginHandler } from "./types.ts";

/**
 * The `plugins` section of the configuration, and limits that only tests override. Durations are in
 * milliseconds.
 */
export type PluginSettings = AgentConfiguration["plugins"] & {
  /** Sockets that must not be used as endpoints. */
  foreignSockets?: readonly string[];
  /** Minimum time after the start for which a name stays with its previous user. Default: 10 s. */
  returnMs?: number;
  /** Timeout for connecting. Default: infoTimeout. */
  dialTimeout?: number;
  /**
   * Maximum number of concurrent first handshakes. Sockets that have failed may use a quarter of this number.
   * Default: 64.
   */
  maxHandshakes?: number;
  limits?: Partial<ScanLimits>;
};

/** Dependencies shared by the parts of this module. */
export interface PluginContext {
  settings: PluginSettings;
  /** By plugin type. */
  handlers: ReadonlyMap<string, PluginHandler>;
  /**
   * Called when a plugin is registered, lost or refused. Repeated refusals with the same reason are reported
   * once.
   */
  onChange: (change: PluginChange) => void;
  vacancies: Vacancies;
  metrics: PluginMetrics;
  clock: Clock;
  log: Logger;
}

/** Sessions that wait until a name or capacity becomes free. */
export class Vacancies {
  readonly #waiting = new Set<() => void>();

  /** Calls `retry` at the next vacancy, unless `cancel` is called before. */
  wait(retry: () => void): void {
    this.#waiting.add(retry);
  }

  cancel(retry: () => void): void {
    this.#waiting.delete(retry);
  }

  /** Must be called when a name or capacity became free. */
  announce(): void {
    const waiting = [...this.#waiting];
    this.#waiting.clear();
    for (const retry of waiting) retry();
  }
}
