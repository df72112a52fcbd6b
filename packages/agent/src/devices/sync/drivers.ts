import { DriverNotResponding, PluginNameRefused, PluginVersionsUnsupported } from "@nodekeeper/api/errors";
import { DriverFeedbackDefinition } from "@nodekeeper/core/gen/nodekeeper/devices/v1alpha2/preparation.ts";
import { watchHeartbeat } from "@nodekeeper/core/grpc";
import {
  childScope,
  quote,
  type ScopedSignal,
  stopped,
  WakeableSleep,
  type WorkQueue,
} from "@nodekeeper/core/lib";
import type { PluginHandler, PluginRegistration, PresentedPlugin } from "../../plugins/index.ts";
import { contractNames, contractOf, serviceOf } from "../model/contract.ts";
import { isDriverName } from "../model/field-names.ts";
import type { DevicePool } from "../model/model.ts";
import type { TaintReasons } from "../plan/added-taints.ts";
import type { SyncContext } from "./context.ts";
import { Driver } from "./driver.ts";
import { DriverDelays } from "./driver-delays.ts";
import type { DriverProblem } from "./driver-problems.ts";
import { followDriver, protocolOf, type StreamUpdate } from "./driver-stream.ts";
import { DriverTaints } from "./driver-taints.ts";

type Context = Pick<SyncContext, "nodeName" | "settings" | "heartbeat" | "metrics" | "clock" | "log"> & {
  queue: Pick<WorkQueue, "add">;
};

/** How claims on a driver's devices are prepared. */
export interface DriverPreparation {
  /** Whether the devices need no preparation, so that the kubelet need not call a plugin for them. */
  needsNoPreparation: boolean;
  /**
   * Resolves when pods can be bound to the devices. Until then the published devices keep the taint of a disconnected
   * driver.
   */
  untilReady: (signal: AbortSignal) => Promise<void>;
}

interface Following {
  scope: ScopedSignal;
  done: Promise<void>;
}

/** Drivers that are registered or were recently, each with its stream. */
export class Drivers implements PluginHandler {
  readonly type = "DRAPlugin";
  readonly #context: Context;
  readonly #drivers = new Map<string, Driver>();
  readonly #following = new Map<string, Following>();
  // Streams of earlier registrations that have not ended yet.
  readonly #superseded = new Set<Promise<void>>();
  readonly #wipes: DriverDelays;
  readonly #taints: DriverTaints;
  // Problems with claims, by driver. Only drivers that have any, registered or not.
  readonly #claimProblems = new Map<string, readonly DriverProblem[]>();
  readonly #registered = new WakeableSleep();
  #isStartupOver = false;

  constructor(context: Context) {
    this.#context = context;
    this.#wipes = new DriverDelays(context.clock, () => this.holdMs());
    this.#taints = new DriverTaints(context);
  }

  get(name: string): Driver | undefined {
    return this.#drivers.get(name);
  }

  /** Sorted by name. */
  list(): Driver[] {
    return [...this.#drivers.values()].sort((a, b) => (a.name < b.name ? -1 : 1));
  }

  get isEmpty(): boolean {
    return this.#drivers.size === 0;
  }

  /** Waits until a driver is known. Supports one caller at a time. Rejects with the signal's reason. */
  async untilAny(signal: AbortSignal): Promise<void> {
    while (this.isEmpty) {
      this.#registered.clear();
      await this.#registered.wait(this.#context.clock, Number.POSITIVE_INFINITY, signal);
    }
  }

  validate({ name, versions }: PresentedPlugin): void {
    if (!isDriverName(name))
      throw new PluginNameRefused({ name: quote(name), rule: "the name of a driver is a DNS subdomain" });
    if (versions.length === 0) {
      const supported = `${contractNames}, 1.0.0`;
      throw new PluginVersionsUnsupported({ type: "DRAPlugin", supported, offered: "none" });
    }
  }

  async register(
    { name, versions, endpoint, generation }: PluginRegistration,
    _signal?: AbortSignal,
    preparation?: DriverPreparation,
  ): Promise<void> {
    const { clock, heartbeat = watchHeartbeat, log, nodeName, settings } = this.#context;
    this.#wipes.cancel(name);
    this.#taints.cancel(name);
    const driver = this.#drivers.get(name) ?? this.#add(name);
    const protocol = protocolOf(versions);
    driver.registered(protocol, generation, preparation?.needsNoPreparation ?? false);
    this.#registered.wake();
    // The report of the previous registration stays valid until the first message.
    const superseded = this.#supersede(name, "registered again");
    if (protocol === "none") {
      // The driver publishes its slices itself. The agent's slices would conflict in its pools.
      this.#withdraw(driver);
      this.#taints.release(driver);
      return;
    }
    const scope = childScope();
    const isCurrent = () => !scope.signal.aborted && driver.standing.generation === generation;
    const ready = preparation?.untilReady(scope.signal).catch(() => {});
    let isReady = ready === undefined;
    const release = () => {
      if (isReady && !driver.standing.unresponsive && isCurrent()) this.#taints.release(driver);
    };
    void ready?.then(() => {
      isReady = true;
      release();
    });
    release();
    const watched = heartbeat(
      {
        path: endpoint,
        onChange: (problem) => {
          if (!isCurrent()) return;
          const wasMissing = driver.standing.unresponsive !== undefined;
          this.#heard(driver, problem);
          if (wasMissing) release();
        },
        clock,
      },
      scope.signal,
    );
    const follow = async () => {
      for await (const update of followDriver(
        {
          endpoint,
          nodeName,
          contract: contractOf(versions),
          maxReceiveBytes: settings().maxMessageSize,
          clock,
          log: log.child({ driver: name }),
        },
        scope.signal,
      ))
        if (isCurrent()) this.#update(driver, update);
    };
    const followed = ready || superseded ? Promise.all([ready, superseded]).then(follow) : follow();
    const service = serviceOf(versions, DriverFeedbackDefinition);
    const told = service && driver.feedback.run({ driver: name, endpoint, service, log }, scope.signal);
    this.#following.set(name, { scope, done: Promise.all([followed, watched, told]).then(() => {}) });
  }

  deregister({ name, generation }: PluginRegistration, reason: string): void {
    const driver = this.#drivers.get(name);
    if (!driver || driver.standing.generation !== generation) return;
    this.#supersede(name, reason);
    driver.deregistered(reason);
    if (driver.isWithdrawn) {
      this.#context.queue.add(name);
      return;
    }
    this.#withdrawLater(driver, reason);
    this.#taints.missing(driver);
  }

  holdMs(): number {
    return this.#context.settings().wipeDelay;
  }

  forget(name: string, reason: string): void {
    const driver = this.#drivers.get(name);
    if (!driver || driver.standing.isRegistered || driver.isWithdrawn) return;
    this.#context.log.info({ driver: name, reason }, "slices of a disconnected driver are deleted early");
    this.#withdraw(driver);
  }

  /** Applies the current delays to drivers that are disconnected or do not answer already. */
  settingsChanged(): void {
    this.#wipes.settingsChanged();
    this.#taints.settingsChanged();
  }

  /** Sets the reasons to taint a driver's devices. The driver need not be registered yet. */
  setTaints(name: string, reasons: TaintReasons): void {
    this.#taints.set(name, reasons, this.#drivers.get(name));
  }

  /** Sets what is refused of a driver's answers and reports about claims. The driver need not be registered. */
  setClaimProblems(name: string, problems: readonly DriverProblem[]): void {
    if (problems.length > 0) this.#claimProblems.set(name, problems);
    else this.#claimProblems.delete(name);
    this.#drivers.get(name)?.feedback.setClaims(problems);
  }

  /**
   * Adopts the published pools of a driver that has not registered since the agent's start. Its devices are tainted
   * until it registers, and withdrawn at `startupOver`. Does nothing after `startupOver`, or if the driver is known.
   */
  adopt(name: string, pools: readonly DevicePool[]): void {
    if (this.#isStartupOver || this.#drivers.has(name)) return;
    const driver = this.#add(name);
    driver.adopt(pools);
    this.#taints.taint(driver);
  }

  /** Withdraws adopted drivers that have not registered. */
  startupOver(): void {
    this.#isStartupOver = true;
    for (const driver of this.#drivers.values()) if (driver.standing.generation === 0) this.#withdraw(driver);
  }

  /** Ends all streams and waits for them. */
  async stop(): Promise<void> {
    this.#wipes.stop();
    this.#taints.stop();
    for (const name of [...this.#following.keys()]) this.#supersede(name, "the agent is stopping");
    await Promise.all(this.#superseded);
  }

  /** Forgets a driver whose slices are deleted. Returns false if it is registered or not withdrawn. */
  withdrawn(name: string): boolean {
    const driver = this.#drivers.get(name);
    if (driver && (driver.standing.isRegistered || !driver.isWithdrawn)) return false;
    this.#drivers.delete(name);
    this.#taints.forget(name);
    this.#context.metrics.messages.remove({ driver: name });
    return true;
  }

  #add(name: string): Driver {
    const { clock, nodeName, settings } = this.#context;
    const driver = new Driver(name, nodeName, clock, settings().clusterPools.drivers.includes(name));
    driver.feedback.setClaims(this.#claimProblems.get(name) ?? []);
    this.#drivers.set(name, driver);
    return driver;
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
    const fields = { driver: driver.name, reason, deleteInMs: this.holdMs() };
    this.#context.log.info(
      fields,
      "driver no longer reports devices: its slices are deleted unless it registers again",
    );
    this.#wipes.start(driver.name, () => this.#withdraw(driver));
  }

  #withdraw(driver: Driver): void {
    this.#wipes.cancel(driver.name);
    this.#taints.cancel(driver.name);
    driver.withdraw();
    this.#context.queue.add(driver.name);
  }

  #update(driver: Driver, update: StreamUpdate): void {
    driver.update(update);
    if (update.state === "none") this.#withdrawLater(driver, "the driver does not implement its stream");
    if (!update.message) return;
    this.#context.metrics.messages.inc({ driver: driver.name });
    this.#context.queue.add(driver.name);
  }

  // Records whether the driver's process answers.
  #heard(driver: Driver, problem: string | undefined): void {
    const { log } = this.#context;
    const wasUnresponsive = driver.standing.unresponsive !== undefined;
    driver.heard(problem);
    if (problem === undefined) {
      if (wasUnresponsive) log.info({ driver: driver.name }, "driver responds again");
      return;
    }
    log.warn(
      { errorId: DriverNotResponding.id, driver: driver.name, reason: problem },
      "driver does not respond: its devices are tainted unless it responds soon",
    );
    this.#taints.missing(driver);
  }
}
