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
  /** By driver: UIDs of the claims that were refused since a write was accepted. */
  readonly #refused = new Map<string, Set<string>>();
  readonly #context: { clock: Clock; log: Logger };

  constructor(context: { clock: Clock; log: Logger }) {
    this.#context = context;
  }

  /** Requests a write for a driver. Returns 0 if it may be done now, otherwise the wait in milliseconds. */
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
    this.#log(driver, problem);
    this.#holds.set(driver, { until: this.#context.clock.monotonic() + HOLD_MS, problem });
    return HOLD_MS;
  }

  /**
   * Holds one claim, and all writes of the driver if another claim was refused, too, and none accepted since: then the
   * reason is most likely not the claim. Returns for how long, in milliseconds.
   */
  holdClaim(driver: string, uid: string, problem: string): number {
    const refused = this.#refused.get(driver) ?? new Set();
    this.#refused.set(driver, refused.add(uid));
    if (refused.size > 1) return this.hold(driver, problem);
    this.#log(driver, problem);
    this.#holds.set(driver, { until: this.#holds.get(driver)?.until ?? 0, problem });
    return HOLD_MS;
  }

  #log(driver: string, problem: string): void {
    if (this.#holds.get(driver)?.problem !== problem)
      this.#context.log.warn(
        { errorId: DeviceStatusNotWritten.id, driver },
        `the status of devices is not written to ResourceClaims: ${problem}`,
      );
  }

  /** Ends a hold, because a write was accepted. */
  release(driver: string): void {
    this.#holds.delete(driver);
    this.#refused.delete(driver);
  }

  forget(driver: string): void {
    this.#buckets.delete(driver);
    this.release(driver);
  }
}
