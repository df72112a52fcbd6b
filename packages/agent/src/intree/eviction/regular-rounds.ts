import type { EvictionPluginParts } from "./in-tree-plugin.ts";

// Tolerance for rounds that start slightly early or late, as a fraction of the period.
const REGULAR_SHARE = 0.8;

/**
 * Distinguishes regular rounds from rounds out of turn, for plugins that count samples. Sample counts represent time,
 * so only one sample per round period may be counted.
 */
export class RegularRounds {
  readonly #parts: Pick<EvictionPluginParts, "clock" | "roundPeriodMs">;
  /** Monotonic time of the last counted sample. */
  #addedAt = Number.NEGATIVE_INFINITY;

  constructor(parts: Pick<EvictionPluginParts, "clock" | "roundPeriodMs">) {
    this.#parts = parts;
  }

  /** Returns whether to count a sample of this round. If true, the next one is counted one period later. */
  take(): boolean {
    const { clock, roundPeriodMs } = this.#parts;
    const now = clock.monotonic();
    if (now - this.#addedAt < roundPeriodMs() * REGULAR_SHARE) return false;
    this.#addedAt = now;
    return true;
  }
}
