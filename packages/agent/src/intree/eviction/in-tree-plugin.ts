import { type EvictionSource, noPods, noTopPods, notMet } from "../../eviction/index.ts";
import type { KnownPlugin } from "../enabled-plugins.ts";
import { MissingReadings } from "./missing-readings.ts";
import type { EvictionPluginParts } from "./parts.ts";

/** What one in-tree eviction plugin works with. */
export interface InTreePluginContext<Settings> {
  parts: EvictionPluginParts;
  /** As they are now: they may change from one call to the next. */
  settings: () => Settings;
  /** Counts and logs the readings that this plugin lacks. */
  missing: MissingReadings;
}

/** The calls that a plugin answers. What it leaves out has nothing to report: no pods, a threshold that is not met. */
export type InTreeAnswers = Partial<Omit<EvictionSource, "name">>;

/** An in-tree eviction plugin before it is started: all that is particular to it, in one value. */
export interface InTreePlugin<Settings> extends KnownPlugin {
  /** What holds where the operator sets nothing. */
  readonly defaults: Readonly<Settings>;
  answers(context: InTreePluginContext<Settings>): InTreeAnswers;
}

/** The plugin as rounds ask it. */
export function inTreeSource<Settings>(
  { name, answers }: InTreePlugin<Settings>,
  parts: EvictionPluginParts,
  settings: () => Settings,
): EvictionSource {
  const missing = new MissingReadings(name, parts.log, parts.metrics);
  const own = answers({ parts, settings, missing });
  return {
    name,
    getEvictPods: async (pods, signal) => (await own.getEvictPods?.(pods, signal)) ?? noPods,
    thresholdMet: async (pods, signal) => (await own.thresholdMet?.(pods, signal)) ?? notMet,
    getTopEvictionPods: async (pods, question, signal) =>
      (await own.getTopEvictionPods?.(pods, question, signal)) ?? noTopPods,
    ...(own.crossed ? { crossed: (sample) => own.crossed!(sample) } : {}),
  };
}
