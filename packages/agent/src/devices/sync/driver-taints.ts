import type { WorkQueue } from "@nodekeeper/core/lib";
import { disconnectedTaint, type TaintReasons } from "../plan/added-taints.ts";
import { type SyncContext, taintDelayOf } from "./context.ts";
import type { Driver } from "./driver.ts";
import { DriverDelays } from "./driver-delays.ts";

type Context = Pick<SyncContext, "settings" | "clock"> & { queue: Pick<WorkQueue, "add"> };

const nothingAdded: TaintReasons = { byDevice: new Map(), isStuck: false };

/**
 * Taints that the agent adds to devices: of missing drivers, so that no pod is scheduled to them, and of unhealthy
 * devices.
 */
export class DriverTaints {
  readonly #context: Context;
  readonly #delays: DriverDelays;
  readonly #reasons = new Map<string, TaintReasons>();

  constructor(context: Context) {
    this.#context = context;
    this.#delays = new DriverDelays(context.clock, () => taintDelayOf(context.settings()));
  }

  /**
   * Taints the devices of a driver that disconnected or does not answer, after the delay. A pending delay is not
   * restarted.
   */
  missing(driver: Driver): void {
    const { name } = driver;
    const delayMs = taintDelayOf(this.#context.settings());
    if (delayMs === Number.POSITIVE_INFINITY || driver.isMissing || this.#delays.has(name)) return;
    this.#delays.start(name, () => this.taint(driver));
  }

  /** Applies the current delay to drivers that are missing already. */
  settingsChanged(): void {
    this.#delays.settingsChanged();
  }

  /** Taints all of a driver's devices now. */
  taint(driver: Driver): void {
    this.cancel(driver.name);
    this.#refresh(driver, true);
  }

  /** Removes the taint of a missing driver. The taints of `set` stay. */
  release(driver: Driver): void {
    this.cancel(driver.name);
    this.#refresh(driver, false);
  }

  /** Sets the reasons to taint a connected driver's devices: their health, and whether it is stuck. */
  set(name: string, reasons: TaintReasons, driver: Driver | undefined): void {
    this.#reasons.set(name, reasons);
    if (driver) this.#refresh(driver);
  }

  #refresh(driver: Driver, isMissing = driver.isMissing): void {
    const { byDevice, isStuck } = this.#reasons.get(driver.name) ?? nothingAdded;
    const all = isMissing || isStuck ? [disconnectedTaint] : [];
    const added = all.length > 0 || byDevice.size > 0 ? { all, byDevice } : undefined;
    if (driver.setTaints(isMissing, added)) this.#context.queue.add(driver.name);
  }

  /** The agent no longer knows the driver: its reasons are set again when it registers. */
  forget(driver: string): void {
    this.cancel(driver);
    this.#reasons.delete(driver);
  }

  /** Cancels the delay of `missing`. */
  cancel(driver: string): void {
    this.#delays.cancel(driver);
  }

  stop(): void {
    this.#delays.stop();
  }
}
