import type { Clock, Logger } from "@nodekeeper/core/lib";
import type { Runtime } from "../runtime/index.ts";
import type { LifecycleMetrics } from "./metrics.ts";
import type { LifecycleSettings } from "./settings.ts";

/** Dependencies shared by all parts of the module. */
export interface LifecycleContext {
  runtime: Runtime;
  clock: Clock;
  log: Logger;
  settings: LifecycleSettings;
  metrics: LifecycleMetrics;
  /** For the jitter of backoff. */
  random: () => number;
}
