import { DeviceStatusNotWritten } from "@nodekeeper/api/errors";
import { type Clock, type Logger, TokenBucket } from "@nodekeeper/core/lib";

// Of one driver. A report has the status of all its claims, once a second.
const WRITES = { perSecond: 5, burst: 20 };
const WAIT_MS = 1_000;
// After a refusal that only an operator can change.
const HOLD_MS = 300_000;

/** Decides when the status of a driver's devices may be written. */
export class StatusPace {
  readonly #buckets = new Map<string, TokenBucket>();
  /** By driver: until when nothing is written, in monotonic milliseconds, and why. */
  readonly #holds = new Map<string, { until: number; problem: string }>();
  readonly #context: { clock: Clock; log: Logger };

  constructor(context: { clock: Clock; log: Logger }) {
    this.#context = context;
  }

  /** Why nothing is written for a driver. Undefined if it is. */
  problemOf(driver: string): string | undefined {
    return this.#holds.get(driver)?.problem;
  }

  /** Takes a write of a driver. Returns how long it must wait instead, in milliseconds; 0: it may be done now. */
  take(driver: string): number {
    const { clock } = this.#context;
    const waitMs = (this.#holds.get(driver)?.until ?? 0) - clock.monotonic();
    if (waitMs > 0) return waitMs;
    const bucket = this.#buckets.get(driver) ?? new TokenBucket(clock, WRITES);
    this.#buckets.set(driver, bucket);
    return bucket.tryTake() ? 0 : WAIT_MS;
  }

  /** Holds all writes of a driver. Returns for how long, in milliseconds. */
  hold(driver: string, problem: string): number {
    const { clock, log } = this.#context;
    const isKnown = this.#holds.get(driver)?.problem === problem;
    this.#holds.set(driver, { until: clock.monotonic() + HOLD_MS, problem });
    if (!isKnown)
      log.warn(
        { errorId: DeviceStatusNotWritten.id, driver },
        `the status of devices is not written to ResourceClaims: ${problem}`,
      );
    return HOLD_MS;
  }

  /** Ends a hold, because a write was accepted. */
  release(driver: string): void {
    this.#holds.delete(driver);
  }

  forget(driver: string): void {
    this.#buckets.delete(driver);
    this.#holds.delete(driver);
  }
}
