import type { EventInput } from "@nodekeeper/core/kube";
import {
  type Clock,
  type Logger,
  type LoopTurns,
  WorkQueue,
  type WorkQueueMetrics,
} from "@nodekeeper/core/lib";
import type { Feature } from "../model/feature-bits.ts";
import { type Desired, nothingDesired } from "./driver.ts";
import { DriverSync } from "./driver-sync.ts";
import type { Drivers } from "./drivers.ts";
import type { DeviceMetrics } from "./metrics.ts";
import type { NodeUid } from "./node-uid.ts";
import { learnFeatures } from "./server-features.ts";
import type { Session } from "./session.ts";
import type { WriteResult } from "./write-result.ts";

export interface SliceQueueOptions {
  drivers: Drivers;
  /** What is in use with the API server; undefined while it is not known which version it has. */
  session: () => Session | undefined;
  nodeUid: NodeUid;
  /** The least time between two rounds of writes of one driver, milliseconds. */
  minWriteIntervalMs: () => number;
  notify: (event: Pick<EventInput, "type" | "reason" | "message">) => void;
  /** A driver's first message was read. */
  onKnown: () => void;
  metrics: DeviceMetrics;
  turns: LoopTurns;
  clock: Clock;
  log: Logger;
  queueMetrics?: WorkQueueMetrics;
  random?: () => number;
}

const WORKERS = 4;

/** Drivers whose slices are to be compared with what they report, one sync of each at a time. */
export class SliceQueue {
  readonly #options: SliceQueueOptions;
  readonly #queue: WorkQueue;
  readonly #syncs = new Map<string, DriverSync>();
  #isStartupOver = false;

  constructor(options: SliceQueueOptions) {
    this.#options = options;
    const { clock, log, queueMetrics } = options;
    this.#queue = new WorkQueue({
      name: "devices",
      clock,
      log,
      ...(queueMetrics ? { metrics: queueMetrics } : {}),
    });
  }

  run(signal: AbortSignal): Promise<void> {
    return this.#queue.run(signal, WORKERS, (driver, scope) => this.#sync(driver, scope));
  }

  /** From now on slices of drivers that did not register again are deleted. */
  startupOver(): void {
    this.#isStartupOver = true;
    this.resync();
  }

  /** What a driver reports has changed. */
  changed(driver: string): void {
    const { clock, minWriteIntervalMs } = this.#options;
    this.#queue.addAfter(driver, this.#syncOf(driver).rest(clock.monotonic(), minWriteIntervalMs()));
  }

  /** Another client changed a slice of this driver. */
  foreign(driver: string): void {
    const { metrics, nodeUid } = this.#options;
    // A slice may have been deleted by the garbage collector, after the Node was created again.
    nodeUid.forget();
    const sync = this.#syncOf(driver);
    if (!sync.isRepair(this.desired(driver))) {
      this.#queue.add(driver);
      return;
    }
    metrics.repairs.inc();
    this.#queue.addAfter(driver, sync.repairDelay());
  }

  /** Syncs every driver that is known or has slices. */
  resync(except?: string): void {
    const { drivers, session } = this.#options;
    const stored = session()?.cache.drivers() ?? new Set<string>();
    for (const driver of new Set([...stored, ...drivers.list().map(({ name }) => name)]))
      if (driver !== except) this.#queue.add(driver);
  }

  /** How the writes of a driver's slices went; undefined before the first. */
  syncOf(driver: string): DriverSync | undefined {
    return this.#syncs.get(driver);
  }

  /** What is to be published of a driver; undefined where that is not known (yet), so that nothing is changed. */
  desired(name: string): Desired | undefined {
    const session = this.#options.session();
    if (!session) return undefined;
    const driver = this.#options.drivers.get(name);
    if (!driver) return this.#isStartupOver ? nothingDesired : undefined;
    const { api, features } = session;
    const isOld = api.version === "v1alpha2";
    const without = new Set([...features.missing, ...(this.#syncs.get(name)?.without ?? [])]);
    const unknown = isOld ? new Set<Feature>() : features.unknownOf(driver.features());
    return driver.desired({ isOld, without, unknown });
  }

  async #sync(name: string, signal: AbortSignal): Promise<void> {
    const session = this.#options.session();
    // The next session asks for every driver again.
    if (!session?.cache.isSynced) return;
    const { clock, drivers, log, minWriteIntervalMs, nodeUid, onKnown, turns } = this.#options;
    const sync = this.#syncOf(name);
    const rest = sync.rest(clock.monotonic(), minWriteIntervalMs());
    if (rest > 0) {
      this.#queue.addAfter(name, rest);
      return;
    }
    try {
      const driver = drivers.get(name);
      // For the slices to be created, while the message is read; where it fails, creating them fails for the same.
      if (driver?.messageAt !== undefined && session.cache.of(name).length === 0)
        nodeUid.read(signal).catch(() => {});
      const wasKnown = driver?.reported() !== undefined;
      await driver?.read(turns);
      if (!wasKnown && driver?.reported()) onKnown();
      await this.#learn(session, name, signal);
      const desired = this.desired(name);
      if (!desired) return;
      if (sync.retryDelay(clock.monotonic()) === 0) sync.retry();
      const result = await session.writer.write(name, desired, sync, signal);
      this.#wrote(session, name, desired, result);
    } catch (error) {
      if (signal.aborted) return;
      const delayMs = sync.failed(error, clock.monotonic());
      log.warn(
        { driver: name, err: error, retryInMs: Math.round(delayMs) },
        "slices can't be written, will be tried again",
      );
      this.#queue.addAfter(name, delayMs);
    }
  }

  // What the server drops is learnt before the first write.
  async #learn({ requests, features }: Session, name: string, signal: AbortSignal): Promise<void> {
    const driver = this.#options.drivers.get(name);
    if (!driver || driver.isWithdrawn || requests.api.version === "v1alpha2") return;
    const reported = driver.reported();
    if (!reported) return;
    const sync = this.#syncOf(name);
    // What the server refuses stays unknown; it is not asked for it with each message.
    const question = `${features.epoch} ${driver.features().join()}`;
    if (sync.asked === question) return;
    const answer = await learnFeatures(requests, name, reported.pools, features, signal);
    sync.asked = question;
    sync.without = answer.without;
    if (!answer.isNew) return;
    const missing = [...features.missing];
    if (missing.length > 0)
      this.#options.log.warn({ errorId: "NK1511", driver: name, features: missing }, featuresOff);
    this.resync(name);
  }

  #wrote(session: Session, name: string, desired: Desired, result: WriteResult): void {
    const { clock, drivers, log } = this.#options;
    const sync = this.#syncOf(name);
    const now = clock.monotonic();
    sync.wrote(result, now);
    this.#report(name, desired, result, now);
    const learnt = [...result.missing].filter((feature) => session.features.learnt(feature, false));
    if (learnt.length > 0) {
      log.warn({ errorId: "NK1511", driver: name, features: learnt }, featuresOff);
      this.resync();
      return;
    }
    if (result.failures.size === 0) {
      sync.settled(desired);
      this.#retryRefused(name, sync);
      const known = drivers.get(name);
      if ((!known || known.isWithdrawn) && drivers.withdrawn(name)) this.#syncs.delete(name);
      return;
    }
    const delayMs = sync.failedPartly();
    const [error] = result.failures.values();
    log.warn(
      { driver: name, slices: [...sync.refusedSlices.keys()], err: error, retryInMs: Math.round(delayMs) },
      "some slices can't be written, will be tried again; the others are",
    );
    this.#queue.addAfter(name, delayMs);
  }

  // Log and Events: other clients' slices that were deleted, devices that are not published.
  #report(name: string, desired: Desired, { outdated }: WriteResult, now: number): void {
    const { log, notify } = this.#options;
    if (outdated.length > 0) {
      const message = `Driver ${name}: slices of another client were in its pools and are deleted: ${outdated.slice(0, 3).join(", ")}`;
      log.warn(
        { errorId: "NK1504", driver: name, slices: outdated },
        "slices of another client were in a driver's pools",
      );
      notify({ type: "Warning", reason: "ForeignSlicesDeleted", message });
    }
    for (const message of this.#syncOf(name).news(name, desired, now)) {
      log.warn({ errorId: "NK1503", driver: name, message }, "not all devices of a driver are published");
      notify({ type: "Warning", reason: "DevicesQuarantined", message });
    }
  }

  // Other work on the driver's key may come before, and is no reason to try earlier.
  #retryRefused(name: string, sync: DriverSync): void {
    const delayMs = sync.retryDelay(this.#options.clock.monotonic());
    if (delayMs !== undefined) this.#queue.addAfter(name, delayMs);
  }

  #syncOf(driver: string): DriverSync {
    let sync = this.#syncs.get(driver);
    if (!sync) {
      sync = new DriverSync(this.#options.clock, this.#options.random);
      this.#syncs.set(driver, sync);
    }
    return sync;
  }
}

const featuresOff = "API server does not keep parts of devices: features that it has off";
