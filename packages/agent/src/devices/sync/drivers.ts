import {
  type Clock,
  childScope,
  type Logger,
  type LoopTurns,
  NodekeeperError,
  quote,
  type ScopedSignal,
  stopped,
  type Timer,
} from "@nodekeeper/core/lib";
import type { PluginHandler, PluginRegistration } from "../../plugins/index.ts";
import { isDriverName } from "../model/field-names.ts";
import type { DevicePool } from "../model/model.ts";
import { type AddedTaints, disconnectedTaint } from "../plan/added-taints.ts";
import { Driver } from "./driver.ts";
import { deviceApiVersion, followDriver, protocolOf } from "./driver-stream.ts";
import type { DeviceMetrics } from "./metrics.ts";

/** Times in milliseconds. */
export interface DriverSettings {
  /** How long the slices of a driver that disconnected stay. */
  wipeDelayMs: number;
  /** After what time the devices of a driver that disconnected are tainted against new pods; Infinity: never. */
  taintDelayMs: number;
  /** The largest message of a driver, bytes. */
  maxMessageBytes: number;
}

export interface DriversOptions {
  nodeName: string;
  settings: () => DriverSettings;
  /** A driver has registered. */
  onRegistered: () => void;
  /** What is to be published of a driver may have changed. */
  onChange: (driver: string) => void;
  /**
   * Resolves when pods can be bound to a driver's devices; undefined: at once. Until then what was published stays, with
   * the taint of a driver that is disconnected.
   */
  untilReady?: ((driver: string, signal: AbortSignal) => Promise<void>) | undefined;
  /** Whether a driver's devices need no preparation, so that the kubelet need not call a plugin for them. */
  needsNoPreparation?: ((driver: string) => boolean) | undefined;
  /** Taints that a driver's devices get beside those that it reports. */
  taints: (driver: string) => Pick<AddedTaints, "byDevice"> | undefined;
  metrics: DeviceMetrics;
  turns: LoopTurns;
  clock: Clock;
  log: Logger;
  random?: () => number;
}

const nothingAdded: Pick<AddedTaints, "byDevice"> = { byDevice: new Map() };

interface Following {
  scope: ScopedSignal;
  done: Promise<void>;
}

/** The drivers that are registered, or were until recently, each with its stream. */
export class Drivers implements PluginHandler {
  readonly type = "DRAPlugin";
  readonly #options: DriversOptions;
  readonly #drivers = new Map<string, Driver>();
  readonly #following = new Map<string, Following>();
  // Streams of earlier registrations until they are over.
  readonly #superseded = new Set<Promise<void>>();
  readonly #wipes = new Map<string, Timer>();
  readonly #taints = new Map<string, Timer>();

  #isStartupOver = false;

  constructor(options: DriversOptions) {
    this.#options = options;
  }

  get(name: string): Driver | undefined {
    return this.#drivers.get(name);
  }

  /** Sorted by name. */
  list(): Driver[] {
    return [...this.#drivers.values()].sort((a, b) => (a.name < b.name ? -1 : 1));
  }

  validate({ name, versions }: Omit<PluginRegistration, "generation">): void {
    if (!isDriverName(name))
      throw new NodekeeperError("invalid", `${quote(name)} is not a driver's name, a DNS subdomain`, {
        id: "NK1302",
      });
    if (versions.length === 0) {
      throw new NodekeeperError(
        "unsupported",
        `no versions; the agent takes devices by ${deviceApiVersion} and 1.0.0`,
        { id: "NK1306" },
      );
    }
  }

  async register({ name, versions, endpoint, generation }: PluginRegistration): Promise<void> {
    const { clock, log, settings, turns } = this.#options;
    this.#wipes.get(name)?.cancel();
    this.#wipes.delete(name);
    this.#taints.get(name)?.cancel();
    this.#taints.delete(name);
    const driver = this.#drivers.get(name) ?? new Driver(name, this.#options.nodeName);
    this.#drivers.set(name, driver);
    const protocol = protocolOf(versions);
    driver.protocol = protocol;
    if (driver.isWithdrawn) driver.forget();
    driver.isWithdrawn = false;
    driver.isRegistered = true;
    driver.generation = generation;
    this.#options.onRegistered();
    driver.needsNoPreparation = this.#options.needsNoPreparation?.(name) ?? false;
    this.#enter(driver, protocol === "none" ? "none" : "waiting");
    // What the registration before has reported holds until the first message.
    const superseded = this.#supersede(name, "registered again");
    if (protocol === "none") {
      // It publishes its slices itself: those that the agent published would spoil its pools.
      this.#withdraw(driver);
      this.#taint(driver, false);
      return;
    }
    const scope = childScope();
    const heard = () => {
      driver.messageAt = clock.now();
      this.#options.metrics.messages.inc({ driver: name });
      this.#options.onChange(name);
    };
    const isCurrent = () => !scope.signal.aborted && driver.generation === generation;
    const ready = this.#options.untilReady?.(name, scope.signal).catch(() => {});
    if (ready) void ready.then(() => isCurrent() && this.#taint(driver, false));
    else this.#taint(driver, false);
    const follow = () =>
      followDriver(
        {
          endpoint,
          nodeName: this.#options.nodeName,
          protocol,
          maxReceiveBytes: settings().maxMessageBytes,
          onMessage: (message) => {
            if (!isCurrent()) return;
            driver.protocol = protocol;
            driver.take(message);
            heard();
          },
          onDelta: async (delta) => {
            if (!isCurrent()) return;
            await driver.apply(delta, turns);
            heard();
          },
          onState: (state, error) => {
            if (!isCurrent()) return;
            this.#enter(driver, state, error);
            if (state === "none") this.#withdrawLater(driver, "the driver does not implement its stream");
          },
          clock,
          log: log.child({ driver: name }),
          ...(this.#options.random ? { random: this.#options.random } : {}),
        },
        scope.signal,
      );
    const done = ready || superseded ? Promise.all([ready, superseded]).then(follow) : follow();
    this.#following.set(name, { scope, done });
  }

  deregister({ name, generation }: PluginRegistration, reason: string): void {
    const driver = this.#drivers.get(name);
    if (!driver || driver.generation !== generation) return;
    this.#supersede(name, reason);
    driver.isRegistered = false;
    this.#enter(driver, driver.state === "none" ? "none" : "ended", reason);
    if (driver.isWithdrawn) {
      this.#options.onChange(name);
      return;
    }
    this.#withdrawLater(driver, reason);
    const { clock, settings } = this.#options;
    const { taintDelayMs } = settings();
    if (taintDelayMs === Number.POSITIVE_INFINITY) return;
    this.#taints.get(name)?.cancel();
    this.#taints.set(
      name,
      clock.after(taintDelayMs, () => {
        this.#taints.delete(name);
        this.#taint(driver, true);
      }),
    );
  }

  /** The taints that the agent adds to a driver's devices have changed. */
  taintsChanged(name: string): void {
    const driver = this.#drivers.get(name);
    if (driver) this.#taint(driver, driver.isTainted);
  }

  /**
   * Takes what was published earlier of a driver that has not registered since the agent's start: its devices are tainted
   * until it does, or `startupOver`. Nothing is done after that, or where it has registered.
   */
  adopt(name: string, pools: readonly DevicePool[]): void {
    if (this.#isStartupOver || this.#drivers.has(name)) return;
    const driver = new Driver(name, this.#options.nodeName);
    this.#drivers.set(name, driver);
    driver.take({ protocol: "published", pools });
    this.#enter(driver, "ended", "not registered since the agent's start");
    this.#taint(driver, true);
  }

  /** What was adopted of drivers that have not registered is withdrawn. */
  startupOver(): void {
    this.#isStartupOver = true;
    for (const driver of this.#drivers.values()) if (driver.generation === 0) this.#withdraw(driver);
  }

  /** Ends every stream. */
  async stop(): Promise<void> {
    for (const timer of [...this.#wipes.values(), ...this.#taints.values()]) timer.cancel();
    for (const name of [...this.#following.keys()]) this.#supersede(name, "the agent is stopping");
    await Promise.all(this.#superseded);
  }

  /** Its slices are deleted: nothing is left to remember of a driver that disconnected. Answers whether it did. */
  withdrawn(name: string): boolean {
    const driver = this.#drivers.get(name);
    if (driver && (driver.isRegistered || !driver.isWithdrawn)) return false;
    this.#drivers.delete(name);
    this.#options.metrics.messages.remove({ driver: name });
    return true;
  }

  #supersede(name: string, reason: string): Promise<void> | undefined {
    const following = this.#following.get(name);
    if (!following) return undefined;
    this.#following.delete(name);
    following.scope.abort(stopped(reason));
    const over = following.done.finally(() => {
      following.scope.release();
      this.#superseded.delete(over);
    });
    this.#superseded.add(over);
    return over;
  }

  #withdrawLater(driver: Driver, reason: string): void {
    const { clock, log, settings } = this.#options;
    const { wipeDelayMs } = settings();
    const fields = { driver: driver.name, reason, deleteInMs: wipeDelayMs };
    log.info(fields, "driver reports no devices any more: its slices are deleted unless it registers again");
    this.#wipes.get(driver.name)?.cancel();
    this.#wipes.set(
      driver.name,
      clock.after(wipeDelayMs, () => this.#withdraw(driver)),
    );
  }

  #withdraw(driver: Driver): void {
    this.#wipes.delete(driver.name);
    this.#taints.get(driver.name)?.cancel();
    this.#taints.delete(driver.name);
    driver.isWithdrawn = true;
    this.#options.onChange(driver.name);
  }

  // While it is disconnected, its devices could not be prepared.
  #taint(driver: Driver, isDisconnected: boolean): void {
    const { byDevice } = this.#options.taints(driver.name) ?? nothingAdded;
    const before = driver.addedTaints;
    driver.isTainted = isDisconnected;
    driver.addedTaints =
      isDisconnected || byDevice.size > 0
        ? { all: isDisconnected ? [disconnectedTaint] : [], byDevice }
        : undefined;
    if (before !== driver.addedTaints) this.#options.onChange(driver.name);
  }

  #enter(driver: Driver, state: Driver["state"], error?: string): void {
    driver.error = error;
    if (driver.state === state && driver.since > 0) return;
    driver.state = state;
    driver.since = this.#options.clock.now();
    driver.enteredAt = this.#options.clock.monotonic();
  }
}
