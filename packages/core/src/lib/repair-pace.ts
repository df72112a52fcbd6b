import { delayAfter } from "./backoff.ts";
import type { Clock } from "./clock.ts";
import type { RepairPolicy } from "./retry.ts";

// If no repair was needed for this long, the other client has stopped.
const MEMORY_MS = 300_000;
// This number of consecutive repairs means that two clients conflict.
const MANY = 5;

/**
 * Paces repairs of the agent's content that another client changes. The first repairs are immediate, later ones
 * increasingly delayed.
 */
export class RepairPace {
  readonly #clock: Clock;
  readonly #policy: RepairPolicy & { random?: () => number };
  #repairs = 0;
  /** Monotonic time at which the last repair was due. */
  #lastAt = Number.NEGATIVE_INFINITY;

  constructor(clock: Clock, policy: RepairPolicy & { random?: () => number }) {
    this.#clock = clock;
    this.#policy = policy;
  }

  /** Delay of the next repair, in milliseconds. */
  get delayMs(): number {
    const { immediate = 1 } = this.#policy;
    const repairs = this.#remembered;
    return repairs < immediate ? 0 : delayAfter(repairs - immediate + 1, this.#policy);
  }

  /** Counts a repair that is due in `inMs`. */
  count(inMs = 0): void {
    this.#repairs = this.#remembered + 1;
    this.#lastAt = this.#clock.monotonic() + inMs;
  }

  /** Counts a repair and returns its delay in milliseconds. */
  next(): number {
    const { delayMs } = this;
    this.count(delayMs);
    return delayMs;
  }

  /** Number of repairs while another client keeps changing the content. Undefined if there is no conflict. */
  get conflicts(): number | undefined {
    const repairs = this.#remembered;
    return repairs < MANY ? undefined : repairs;
  }

  // Fractional while a repair is being forgotten.
  get #remembered(): number {
    const quietMs = Math.max(0, this.#clock.monotonic() - this.#lastAt);
    if (quietMs > MEMORY_MS) return 0;
    const { forgetOneMs } = this.#policy;
    return forgetOneMs === undefined ? this.#repairs : Math.max(0, this.#repairs - quietMs / forgetOneMs);
  }
}
