import type { Clock, Runnable } from "@nodekeeper/core/lib";
import type { Host } from "../../host/index.ts";
import type { RoundRequest } from "../round-pacing.ts";
import type { EvictionSettings } from "../round-settings.ts";
import type { EvictionPlugins } from "./plugins.ts";

export interface ThresholdSamplerOptions {
  host: Pick<Host, "sample">;
  plugins: Pick<EvictionPlugins, "areSampled" | "newlyCrossed">;
  onCrossed: (request: RoundRequest) => void;
  settings: () => Pick<EvictionSettings, "outOfTurnRounds">;
  clock: Clock;
}

/** From one sample to the next, milliseconds. */
export const SAMPLE_PERIOD_MS = 250;
// Upper bound of the share of one core for sampling: expensive samples, as with hundreds of CPUs, are taken less often.
const LARGEST_SHARE = 0.002;
const LONGEST_PERIOD_MS = 2_000;
// The fastest of so many samples is their cost: the others include waits for a CPU.
const COST_SAMPLES = 8;

/**
 * Samples the machine between rounds, so that pressure is acted on within a fraction of a second: a threshold that was not
 * crossed by the previous sample starts a round out of turn.
 */
export class ThresholdSampler implements Runnable {
  readonly name = "eviction-sampler";
  readonly #options: ThresholdSamplerOptions;

  constructor(options: ThresholdSamplerOptions) {
    this.#options = options;
  }

  async run(signal: AbortSignal): Promise<void> {
    const { clock } = this.#options;
    const spentMs: number[] = [];
    while (!signal.aborted) {
      const startedAt = clock.monotonic();
      this.#sample();
      spentMs.unshift(clock.monotonic() - startedAt);
      spentMs.length = Math.min(spentMs.length, COST_SAMPLES);
      const pauseMs = Math.min(
        Math.max(SAMPLE_PERIOD_MS, Math.min(...spentMs) / LARGEST_SHARE),
        LONGEST_PERIOD_MS,
      );
      await clock.sleep(pauseMs, signal).catch(() => {});
    }
  }

  #sample(): void {
    const { host, plugins, onCrossed, settings } = this.#options;
    if (!settings().outOfTurnRounds || !plugins.areSampled) return;
    for (const request of plugins.newlyCrossed(host.sample())) onCrossed(request);
  }
}
