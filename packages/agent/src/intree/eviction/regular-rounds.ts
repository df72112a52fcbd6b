import type { EvictionPluginParts } from "./parts.ts";

// Rounds are some milliseconds late, or early after one that was.
const REGULAR_SHARE = 0.8;

/**
 * Tells regular rounds from rounds out of turn, for a plugin that counts samples or keeps a history of them: these
 * stand for time, so only one sample for each period of rounds may be added.
 */
export class RegularRounds {
  readonly #parts: Pick<EvictionPluginParts, "clock" | "roundPeriodMs">;
  /** Monotonic: when a sample was added last. */
  #addedAt = Number.NEGATIVE_INFINITY;

  constructor(parts: Pick<EvictionPluginParts, "clock" | "roundPeriodMs">) {
    this.#parts = parts;
  }

  /** Whether a sample of this round is to be added. Where it is, the next one is a period later. */
  take(): boolean {
    const { clock, roundPeriodMs } = this.#parts;
    const now = clock.monotonic();
    if (now - this.#addedAt < roundPeriodMs() * REGULAR_SHARE) return false;
    this.#addedAt = now;
    return true;
  }
}
