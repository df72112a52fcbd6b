import { type EvictionSource, noPods, noTopPods, notMet } from "../../eviction/index.ts";
import type { KnownPlugin } from "../enabled-plugins.ts";
import { MissingReadings } from "./missing-readings.ts";
import type { EvictionPluginParts } from "./parts.ts";

/** Dependencies of one in-tree eviction plugin. */
export interface InTreePluginContext<Settings> {
  parts: EvictionPluginParts;
  /** Returns the current settings, which may change between calls. */
  settings: () => Settings;
  /** Counts and logs the readings that this plugin lacks. */
  missing: MissingReadings;
}

/** The methods a plugin implements. An omitted method returns no pods or a threshold that is not met. */
export type InTreeAnswers = Partial<Omit<EvictionSource, "name">>;

/** Declaration of an in-tree eviction plugin. */
export interface InTreePlugin<Settings> extends KnownPlugin {
  answers(context: InTreePluginContext<Settings>): InTreeAnswers;
}

/** The plugin as an EvictionSource for rounds. */
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
