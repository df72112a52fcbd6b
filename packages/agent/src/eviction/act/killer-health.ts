import type { Clock, HealthResult } from "@nodekeeper/core/lib";

// Without evictions the agent does not learn that the cause has ended.
const LASTS_MS = 10 * 60_000;
const MOST_FAILED_IN_A_ROW = 3;

/**
 * Whether evictions are accepted.
 *
 * 1. A missing right, or a killer that can't work, fails it for ten minutes after the last attempt.
 * 2. So do three evictions in a row of which none was accepted, whatever the reasons and however fast they failed.
 * 3. One acceptance makes it pass.
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

  /** An attempt showed that no pod can be evicted. */
  forbidden(message: string): void {
    this.#missingRight = { message, at: this.#clock.monotonic() };
  }

  /** An attempt was made, and no right was missing. */
  permitted(): void {
    this.#missingRight = undefined;
  }

  accepted(): void {
    this.#missingRight = undefined;
    this.#failed = undefined;
  }

  /** An eviction failed that was not accepted. */
  failed(message: string): void {
    this.#failed = { count: (this.#failed?.count ?? 0) + 1, message, at: this.#clock.monotonic() };
  }

  /** The reason for which the check fails; undefined where it passes. */
  problem(): HealthResult | undefined {
    if (this.missingRight !== undefined) return { ok: false, message: this.missingRight, errorId: "NK1602" };
    if (!this.#isRecent(this.#failed) || this.#failed.count < MOST_FAILED_IN_A_ROW) return undefined;
    const { count, message } = this.#failed;
    return {
      ok: false,
      message: `the last ${count} evictions failed, none was accepted; the last one: ${message}`,
      errorId: "NK1602",
    };
  }

  #isRecent<T extends { at: number }>(one: T | undefined): one is T {
    return one !== undefined && this.#clock.monotonic() - one.at < LASTS_MS;
  }
}
