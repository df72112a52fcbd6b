import {
  type Clock,
  childScope,
  type Logger,
  NodekeeperError,
  quote,
  type ScopedSignal,
  stopped,
  type Timer,
} from "../lib/index.ts";
import type { PluginHandler, PluginRegistration } from "../plugins/index.ts";
import { Driver } from "./driver.ts";
import { deviceApiVersion, followDriver, protocolOf } from "./driver-stream.ts";
import { isDriverName } from "./field-names.ts";
import type { DeviceMetrics } from "./metrics.ts";

/** Times in milliseconds. */
export interface DriverSettings {
  /** How long the slices of a driver that is gone stay. */
  wipeDelayMs: number;
  /** The largest message of a driver, bytes. */
  maxMessageBytes: number;
}

export interface DriversOptions {
  nodeName: string;
  settings: () => DriverSettings;
  /** What a driver wants may have changed. */
  onChange: (driver: string) => void;
  metrics: () => DeviceMetrics;
  clock: Clock;
  log: Logger;
  random?: () => number;
}

interface Following {
  scope: ScopedSignal;
  done: Promise<void>;
}

/** The drivers that are registered, or were until lately, each with its stream. */
export class Drivers implements PluginHandler {
  readonly type = "DRAPlugin";
  readonly #options: DriversOptions;
  readonly #drivers = new Map<string, Driver>();
  readonly #following = new Map<string, Following>();
  readonly #wipes = new Map<string, Timer>();

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
      throw new NodekeeperError("invalid", `${quote(name)} is not a driver's name, a DNS subdomain`);
    if (versions.length === 0) {
      throw new NodekeeperError(
        "unsupported",
        `no versions; the agent takes devices by ${deviceApiVersion} and 1.0.0`,
      );
    }
  }

  async register({ name, versions, endpoint, generation }: PluginRegistration): Promise<void> {
    const { clock, log, settings } = this.#options;
    this.#wipes.get(name)?.cancel();
    this.#wipes.delete(name);
    const driver = this.#drivers.get(name) ?? new Driver(name, this.#options.nodeName);
    this.#drivers.set(name, driver);
    const protocol = protocolOf(versions);
    if (driver.protocol !== protocol && !driver.isWiped) driver.protocol = protocol;
    if (driver.isWiped) driver.forget();
    driver.isWiped = false;
    driver.isRegistered = true;
    driver.generation = generation;
    this.#enter(driver, protocol === "none" ? "none" : "waiting");
    // The stream of the registration before says nothing any more; what it said holds until the first message.
    this.#following.get(name)?.scope.abort(stopped("registered anew"));
    this.#following.delete(name);
    if (protocol === "none") return;
    const scope = childScope();
    const isCurrent = () => !scope.signal.aborted && driver.generation === generation;
    const done = followDriver(
      {
        endpoint,
        nodeName: this.#options.nodeName,
        protocol,
        maxReceiveBytes: settings().maxMessageBytes,
        onMessage: (message) => {
          if (!isCurrent()) return;
          driver.protocol = protocol;
          driver.take(message);
          driver.messageAt = clock.now();
          this.#options.metrics().messages.inc({ driver: name });
          this.#options.onChange(name);
        },
        onState: (state, error) => {
          if (isCurrent()) this.#enter(driver, state, error);
        },
        clock,
        log: log.child({ driver: name }),
        ...(this.#options.random ? { random: this.#options.random } : {}),
      },
      scope.signal,
    );
    this.#following.set(name, { scope, done });
  }

  deregister({ name, generation }: PluginRegistration, reason: string): void {
    const driver = this.#drivers.get(name);
    if (!driver || driver.generation !== generation) return;
    const { clock, log, settings } = this.#options;
    this.#following.get(name)?.scope.abort(stopped(reason));
    this.#following.delete(name);
    driver.isRegistered = false;
    this.#enter(driver, driver.state === "none" ? "none" : "ended", reason);
    if (driver.state === "none") {
      this.#drivers.delete(name);
      return;
    }
    const { wipeDelayMs } = settings();
    log.info(
      { driver: name, reason, wipeInMs: wipeDelayMs },
      "driver is gone: its slices go too unless it comes back",
    );
    this.#wipes.set(
      name,
      clock.after(wipeDelayMs, () => this.#wipe(driver)),
    );
  }

  /** Ends every stream. */
  async stop(): Promise<void> {
    for (const timer of this.#wipes.values()) timer.cancel();
    for (const { scope } of this.#following.values()) scope.abort(stopped("the agent is stopping"));
    await Promise.all([...this.#following.values()].map(({ done }) => done));
  }

  /** Its slices are gone: nothing is left to remember of a driver that went. */
  wiped(name: string): void {
    if (this.#drivers.get(name)?.isWiped) this.#drivers.delete(name);
  }

  #wipe(driver: Driver): void {
    this.#wipes.delete(driver.name);
    driver.isWiped = true;
    this.#options.onChange(driver.name);
  }

  #enter(driver: Driver, state: Driver["state"], error?: string): void {
    driver.error = error;
    if (driver.state === state && driver.since > 0) return;
    driver.state = state;
    driver.since = this.#options.clock.now();
  }
}
