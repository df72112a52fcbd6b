import { EvictionFailed } from "@nodekeeper/api/errors";
import type { Clock, HealthResult } from "@nodekeeper/core/lib";

// A problem expires after this time, because without evictions the agent can't learn that its cause is resolved.
// Milliseconds.
const LASTS_MS = 10 * 60_000;
const MOST_FAILED_IN_A_ROW = 3;

/**
 * The health of eviction: whether evictions are accepted.
 *
 * 1. A missing right, or a killer that can't work, fails the check for ten minutes after the last attempt.
 * 2. Three consecutive evictions that failed without an acceptance also fail it, regardless of the reasons and of how
 *    fast they failed.
 * 3. One acceptance clears the failure.
 */
export class KillerHealth {
  readonly #clock: Clock;
  #missingRight: { message: string; at: number } | undefined;
  #failed: { count: number; message: string; at: number } | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Why the agent can't evict any pod, as of its last attempt; undefined ten minutes after that attempt. */
  get missingRight(): string | undefined {
    return this.#isRecent(this.#missingRight) ? this.#missingRight.message : undefined;
  }

  /** Records that an attempt showed that no pod can be evicted. */
  forbidden(message: string): void {
    this.#missingRight = { message, at: this.#clock.monotonic() };
  }

  /** Records an attempt for which no right was missing. */
  permitted(): void {
    this.#missingRight = undefined;
  }

  accepted(): void {
    this.#missingRight = undefined;
    this.#failed = undefined;
  }

  /** Records an eviction that failed without an acceptance. */
  failed(message: string): void {
    this.#failed = { count: (this.#failed?.count ?? 0) + 1, message, at: this.#clock.monotonic() };
  }

  /** Returns why the check fails; undefined if it passes. */
  problem(): HealthResult | undefined {
    if (this.missingRight !== undefined)
      return { ok: false, message: this.missingRight, errorId: EvictionFailed.id };
    if (!this.#isRecent(this.#failed) || this.#failed.count < MOST_FAILED_IN_A_ROW) return undefined;
    const { count, message } = this.#failed;
    return {
      ok: false,
      message: `the last ${count} evictions failed, none was accepted; the last one: ${message}`,
      errorId: EvictionFailed.id,
    };
  }

  #isRecent<T extends { at: number }>(one: T | undefined): one is T {
    return one !== undefined && this.#clock.monotonic() - one.at < LASTS_MS;
  }
}
