import type { EvictionSettings } from "@nodekeeper/api/settings";
import type { Clock, Runnable, Timer } from "@nodekeeper/core/lib";
import type { Host } from "../../host/index.ts";
import type { RoundPacing } from "../round-pacing.ts";
import type { EvictionPlugins } from "./plugins.ts";

export interface ThresholdSamplerOptions {
  host: Pick<Host, "sample">;
  plugins: Pick<EvictionPlugins, "areSampled" | "newlyCrossed">;
  pacing: Pick<RoundPacing, "request">;
  settings: () => Pick<EvictionSettings, "outOfTurnRounds">;
  clock: Clock;
}

/** Minimum pause between samples, milliseconds. */
export const SAMPLE_PERIOD_MS = 250;
// Target share of one core for sampling: if samples are expensive, for example with hundreds of CPUs, the pause is
// extended up to the longest period.
const LARGEST_SHARE = 0.002;
const LONGEST_PERIOD_MS = 2_000;
// The fastest of this many samples counts as their cost: the others include waits for a CPU.
const COST_SAMPLES = 8;

/**
 * Samples the machine independently of rounds, so that the agent reacts to pressure within a fraction of a second: a
 * threshold that the previous sample did not cross starts a round out of turn.
 */
export class ThresholdSampler implements Runnable {
  readonly name = "eviction-sampler";
  readonly #options: ThresholdSamplerOptions;

  constructor(options: ThresholdSamplerOptions) {
    this.#options = options;
  }

  // Uses one timer, instead of a promise and an abort listener for each sample. Together with keeping the sampled files
  // open, this saves 3 % of an idle agent's CPU time.
  run(signal: AbortSignal): Promise<void> {
    const { clock } = this.#options;
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const spentMs: number[] = [];
    let timer: Timer | undefined;
    const take = () => {
      try {
        const startedAt = clock.monotonic();
        this.#sample();
        spentMs.unshift(clock.monotonic() - startedAt);
        spentMs.length = Math.min(spentMs.length, COST_SAMPLES);
        const pauseMs = Math.max(SAMPLE_PERIOD_MS, Math.min(...spentMs) / LARGEST_SHARE);
        if (!signal.aborted) timer = clock.after(Math.min(pauseMs, LONGEST_PERIOD_MS), take);
      } catch (error) {
        signal.removeEventListener("abort", stop);
        reject(error);
      }
    };
    const stop = () => {
      timer?.cancel();
      resolve();
    };
    if (signal.aborted) return Promise.resolve();
    signal.addEventListener("abort", stop, { once: true });
    take();
    return promise;
  }

  #sample(): void {
    const { host, plugins, pacing, settings } = this.#options;
    if (!settings().outOfTurnRounds || !plugins.areSampled) return;
    for (const request of plugins.newlyCrossed(host.sample())) pacing.request(request);
  }
}
