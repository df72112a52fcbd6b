import type { Clock, Logger, LoopTurns } from "@nodekeeper/core/lib";
import type { ReporterStore } from "../state/index.ts";
import type { CollectSettings } from "./collect.ts";
import type { KindPolicy } from "./kinds.ts";
import type { ReportingMetrics } from "./metrics.ts";
import type { Notify } from "./publish-options.ts";
import type { ReporterSource } from "./source.ts";

export interface ReporterManagerOptions {
  store: ReporterStore;
  policies: ReadonlyMap<string, KindPolicy>;
  inTree: readonly ReporterSource[];
  settings: () => CollectSettings & { pluginGracePeriod: number };
  /** Maximum number of lost plugins in their grace period; beyond it, plugins with new names are rejected. */
  maxLost: number;
  /** Startup grace period for running plugins to register again, milliseconds. */
  returnMs: number;
  /** Maximum size of a plugin's message, bytes. */
  maxContentBytes: number;
  /** Called with the objects (`kindKey`) whose content may have changed. */
  onChange: (objects: ReadonlySet<string>) => void;
  notify: Notify;
  /** For large messages. */
  turns: LoopTurns;
  clock: Clock;
  log: Logger;
  metrics: ReportingMetrics;
}
