import type { Clock, Logger } from "@nodekeeper/core/lib";
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
  /** How many lost plugins are remembered at once; beyond them no new name is taken. */
  maxLost: number;
  /** How long plugins that run may take to be found and asked after the start, milliseconds. */
  returnMs: number;
  /** Longest message taken from a plugin, bytes. */
  maxContentBytes: number;
  /** Told which objects (`kindKey`) may have to be written anew. */
  onChange: (objects: ReadonlySet<string>) => void;
  notify: Notify;
  clock: Clock;
  log: Logger;
  metrics: ReportingMetrics;
}
