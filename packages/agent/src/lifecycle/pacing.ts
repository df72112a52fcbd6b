import { WakeableSleep } from "@nodekeeper/core/lib";
import type { LifecycleContext } from "./context.ts";

// While it is unknown whether hints are reliable, the period is the time since the stream was opened, divided by this.
const QUIET_SHARE = 10;

/** Schedules relists. */
export class RelistPacing {
  readonly #context: Pick<LifecycleContext, "clock" | "settings">;
  readonly #sleep = new WakeableSleep();
  #distrustedUntil = Number.NEGATIVE_INFINITY;
  #isProven = false;
  #quietSince = Number.POSITIVE_INFINITY;
  #hasFailed = false;
  #isSoon = false;
  /** When pods are to be read again, monotonic milliseconds. Undefined if there are none. */
  #retryAt: number | undefined;

  constructor(context: Pick<LifecycleContext, "clock" | "settings">) {
    this.#context = context;
  }

  /** Current period in milliseconds, from the end of a relist to the start of the next. */
  get periodMs(): number {
    const { clock, settings } = this.#context;
    const { relistPeriod, eventedRelistPeriod, quietRelistPeriod } = settings;
    const now = clock.monotonic();
    if (this.#isSoon || this.#hasFailed || now < this.#distrustedUntil) return relistPeriod;
    if (this.#isProven) return Math.max(eventedRelistPeriod, relistPeriod);
    const longest = Math.min(quietRelistPeriod, eventedRelistPeriod);
    return Math.max(Math.min((now - this.#quietSince) / QUIET_SHARE, longest), relistPeriod);
  }

  /** Called when a relist starts. It satisfies earlier requests. */
  begin(): void {
    this.#isSoon = false;
  }

  /** Called when a relist has ended. */
  end(hasFailed: boolean): void {
    this.#hasFailed = hasFailed;
  }

  /** Schedules the next relist after the short period. */
  soon(): void {
    this.#isSoon = true;
    this.#sleep.wake();
  }

  /**
   * Selects the long period (`eventedRelistPeriod`) if hints are reliable, otherwise the short period.
   * @param isProven whether hints are reliable
   */
  trust(isProven: boolean): void {
    this.#isProven = isProven;
    this.#quietSince = Number.POSITIVE_INFINITY;
    this.#sleep.wake();
  }

  /**
   * Called while nothing proves or disproves that hints are reliable. The period grows with the time without a change,
   * up to `quietRelistPeriod`.
   * @param since when the stream was opened, monotonic milliseconds
   */
  quiet(since: number): void {
    this.#isProven = false;
    this.#quietSince = since;
    this.#sleep.wake();
  }

  /** Uses the short period for a while, because a change was missed. */
  distrust(): void {
    const { clock, settings } = this.#context;
    this.#distrustedUntil = clock.monotonic() + settings.hintDistrustMs;
    this.#sleep.wake();
  }

  /** Called when a pod must be read again, or a caller waits for one. `pause` then calls `onShort`. */
  retry(): void {
    if (this.#retryAt !== undefined) return;
    this.#retryAt = this.#context.clock.monotonic() + this.#context.settings.relistPeriod;
    this.#sleep.wake();
  }

  /**
   * Called at the end of a relist. Waits for the period, or a shorter one if it becomes shorter, or until the signal
   * aborts. After `retry`, calls `onShort` every short period until it returns false.
   */
  async pause(onShort: () => boolean, signal: AbortSignal): Promise<void> {
    const { clock, settings } = this.#context;
    const shortMs = settings.relistPeriod;
    const endedAt = clock.monotonic();
    if (this.#retryAt !== undefined) this.#retryAt = endedAt + shortMs;
    let due = Number.POSITIVE_INFINITY;
    while (!signal.aborted) {
      this.#sleep.clear();
      const now = clock.monotonic();
      // A period that has grown meanwhile applies to the next pause.
      due = Math.min(due, endedAt + this.periodMs);
      if (now >= due) return;
      if (this.#retryAt !== undefined && now >= this.#retryAt)
        this.#retryAt = onShort() ? now + shortMs : undefined;
      await this.#sleep.waitOrAbort(clock, Math.min(due, this.#retryAt ?? due) - now, signal);
    }
  }
}
