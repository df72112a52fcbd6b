import { SliceFieldsDropped, SlicesNotAsPlanned, SlicesNotWritten } from "@nodekeeper/api/errors";
import type { Feature } from "../model/feature-bits.ts";
import { EVERY_DRIVER, type SyncContext } from "./context.ts";
import { type Desired, nothingDesired } from "./driver.ts";
import { DriverSync, type WriteResult } from "./driver-sync.ts";
import type { Drivers } from "./drivers.ts";
import { learnFeatures } from "./server-features.ts";
import type { Session, Sessions } from "./session.ts";
import { TakenNames } from "./taken-names.ts";

type Context = SyncContext & { drivers: Drivers; sessions: Pick<Sessions, "current"> };

const WORKERS = 4;

/** Syncs the slices of queued drivers with what the drivers report. One sync per driver runs at a time. */
export class SliceSync {
  readonly #context: Context;
  readonly #syncs = new Map<string, DriverSync>();
  /** Whether it keeps the slices of pools beyond the node. */
  readonly #isBeyond: boolean;
  readonly #takenNames: TakenNames;
  readonly #knownCallbacks = new Set<() => void>();
  #isStartupOver = false;

  constructor(context: Context) {
    this.#context = context;
    this.#isBeyond = context.scope.nodeName === undefined;
    this.#takenNames = new TakenNames(context);
  }

  run(signal: AbortSignal): Promise<void> {
    return this.#context.queue.run(signal, WORKERS, async (key, scope) => {
      if (key === EVERY_DRIVER) this.#addAll();
      else await this.#sync(key, scope);
    });
  }

  /** Ends the startup grace period: slices of drivers that did not register again are deleted. */
  startupOver(): void {
    this.#isStartupOver = true;
    this.#context.queue.add(EVERY_DRIVER);
  }

  /**
   * Calls back when a driver's first message is read, also after the driver was forgotten. Returns a function that
   * unsubscribes.
   */
  onDevicesKnown(callback: () => void): () => void {
    this.#knownCallbacks.add(callback);
    return () => void this.#knownCallbacks.delete(callback);
  }

  /** The state of a driver's writes; undefined before its first sync. */
  syncOf(driver: string): DriverSync | undefined {
    return this.#syncs.get(driver);
  }

  /** The desired state of a driver's slices. Undefined while it is unknown; then nothing is changed. */
  desired(name: string): Desired | undefined {
    const session = this.#context.sessions.current;
    if (!session) return undefined;
    const { drivers } = this.#context;
    const driver = drivers.get(name);
    const { api, features } = session;
    const isOld = api.version === "v1alpha2";
    // Pools beyond the node stay published while the driver is not present: drivers on other nodes may report them.
    if (this.#isBeyond && (isOld || !driver?.isPresent)) return undefined;
    if (!driver) return this.#isStartupOver ? nothingDesired : undefined;
    const without = new Set([...features.missing, ...(this.#syncs.get(name)?.without ?? [])]);
    const isBeyond = this.#isBeyond;
    const unknown = isOld ? new Set<Feature>() : features.unknownOf(driver.features(isBeyond));
    const desired = driver.desired({ isBeyond, isOld, without, unknown });
    return desired && isBeyond ? this.#takenNames.without(desired) : desired;
  }

  /** Returns whether the last sync of a driver's slices brought them to what is desired now. */
  isSettled(driver: string): boolean {
    const desired = this.desired(driver);
    return desired !== undefined && (this.#syncs.get(driver)?.isSettled(desired) ?? false);
  }

  async #sync(name: string, signal: AbortSignal): Promise<void> {
    const session = this.#context.sessions.current;
    // The next session adds every driver again.
    if (!session?.cache.isSynced) return;
    const { clock, log, settings, nodeUid, queue, turns } = this.#context;
    const sync = this.#syncOf(name);
    const rest = sync.rest(clock.monotonic(), settings().minWriteInterval);
    if (rest > 0) {
      queue.addAfter(name, rest);
      return;
    }
    const changedAt = session.cache.takeForeignChange(name);
    // The garbage collector may have deleted a slice after the Node was created again.
    if (changedAt !== undefined) nodeUid.forget();
    try {
      const driver = this.#context.drivers.get(name);
      // Reads the UID for new slices while the message is read. On failure, creating them fails with the same error.
      const isNew = driver?.standing.messageAt !== undefined && session.cache.of(name).length === 0;
      if (isNew && !this.#isBeyond) nodeUid.read(signal).catch(() => {});
      const wasKnown = driver?.reported() !== undefined;
      let first: Promise<void> | undefined;
      await driver?.read(turns, (head) => {
        first ??= session.writer.writeFirst(name, head, sync, signal);
        // It is awaited below, after the message is read.
        first.catch(() => {});
      });
      if (!wasKnown && driver?.reported()) for (const callback of this.#knownCallbacks) callback();
      // Throws if the server can't be reached.
      await first;
      const delayMs = this.#isBeyond && driver ? await this.#takenNames.look(session, driver, signal) : 0;
      if (delayMs > 0) {
        queue.addAfter(name, delayMs);
        return;
      }
      await this.#learn(session, name, signal);
      const desired = this.desired(name);
      if (!desired || (changedAt !== undefined && this.#awaitsRepair(name, desired, changedAt))) return;
      if (sync.retryDelay(clock.monotonic()) === 0) sync.retry();
      const result = await session.writer.write(name, desired, sync, signal);
      this.#wrote(session, name, desired, result);
    } catch (error) {
      if (signal.aborted) return;
      const delayMs = sync.failed(error, clock.monotonic());
      log.warn(
        { driver: name, err: error, retryInMs: Math.round(delayMs) },
        "failed to write slices, retrying",
      );
      queue.addAfter(name, delayMs);
    }
  }

  // Returns whether the repair of slices that another client changed is postponed, because that client undoes each
  // repair. Queues a postponed repair. If the desired state is the same as when it was last reached, another client
  // made the change.
  #awaitsRepair(name: string, desired: Desired, changedAt: number): boolean {
    const { clock, metrics, queue } = this.#context;
    const sync = this.#syncOf(name);
    if (!sync.isSettled(desired)) return false;
    const { isNew, delayMs: fromChange } = sync.repair(changedAt);
    if (isNew) metrics.repairs.inc();
    const delayMs = fromChange - (clock.monotonic() - changedAt);
    if (delayMs > 0) queue.addAfter(name, delayMs);
    return delayMs > 0;
  }

  #addAll(): void {
    const { queue, scope } = this.#context;
    if (scope.driver !== undefined) {
      queue.add(scope.driver);
      return;
    }
    const stored = this.#context.sessions.current?.cache.drivers() ?? [];
    for (const driver of new Set([...stored, ...this.#context.drivers.list().map(({ name }) => name)]))
      queue.add(driver);
  }

  // Learns which features the server drops, before the first write.
  async #learn(session: Session, name: string, signal: AbortSignal): Promise<void> {
    const { requests, features } = session;
    const { clock, log, queue } = this.#context;
    const driver = this.#context.drivers.get(name);
    if (!driver || driver.isWithdrawn || requests.api.version === "v1alpha2") return;
    const reported = driver.reportedPart(this.#isBeyond);
    if (!reported) return;
    const sync = this.#syncOf(name);
    // A refused feature stays unknown. It is queried again after a delay, not with each message.
    const needed = driver.features(this.#isBeyond);
    const question = `${features.epoch} ${needed.join()}`;
    const delayMs = sync.askDelay(question, clock.monotonic());
    if (delayMs > 0) {
      if (delayMs < Number.POSITIVE_INFINITY) queue.addAfter(name, delayMs);
      return;
    }
    const { without, isNew } = await learnFeatures(session, name, reported.pools, signal);
    const isRefused = [...features.unknownOf(needed)].some((feature) => !without.has(feature));
    sync.asked(question, without, isRefused, clock.monotonic());
    if (isRefused) queue.addAfter(name, sync.askDelay(question, clock.monotonic()));
    if (!isNew) return;
    const missing = [...features.missing];
    if (missing.length > 0)
      log.warn({ errorId: SliceFieldsDropped.id, driver: name, features: missing }, featuresOff);
    queue.add(EVERY_DRIVER);
  }

  #wrote(session: Session, name: string, desired: Desired, result: WriteResult): void {
    const { clock, log, queue } = this.#context;
    const sync = this.#syncOf(name);
    const now = clock.monotonic();
    sync.wrote(result, now);
    this.#report(name, desired, result, now);
    const learnt = [...result.missing].filter((feature) => session.features.learnt(feature, false));
    if (learnt.length > 0) {
      log.warn({ errorId: SliceFieldsDropped.id, driver: name, features: learnt }, featuresOff);
      queue.add(EVERY_DRIVER);
      return;
    }
    if (result.failures.size === 0) {
      sync.settled(desired);
      // A sync of the driver before the delay ends does not retry refused devices.
      const retryInMs = sync.retryDelay(now);
      if (retryInMs !== undefined) queue.addAfter(name, retryInMs);
      if (this.#isBeyond) return;
      const known = this.#context.drivers.get(name);
      if ((!known || known.isWithdrawn) && this.#context.drivers.withdrawn(name)) this.#syncs.delete(name);
      return;
    }
    const delayMs = sync.failedPartly();
    const [error] = result.failures.values();
    log.warn(
      {
        errorId: SlicesNotWritten.id,
        driver: name,
        slices: [...sync.refusedSlices.keys()],
        err: error,
        retryInMs: Math.round(delayMs),
      },
      "failed to write some slices, retrying; the others are written",
    );
    queue.addAfter(name, delayMs);
  }

  // Logs deleted slices of other clients and devices that are not published, and emits Events about both. Reports the
  // latter to the driver too.
  #report(name: string, desired: Desired, { outdated }: WriteResult, now: number): void {
    const { log, notify } = this.#context;
    if (outdated.length > 0) {
      const message = `Driver ${name}: slices of another client were in its pools and are deleted: ${outdated.slice(0, 3).join(", ")}`;
      log.warn(
        { errorId: SlicesNotAsPlanned.id, driver: name, slices: outdated },
        "slices of another client were in a driver's pools",
      );
      notify({ type: "Warning", reason: "ForeignSlicesDeleted", message });
    }
    const sync = this.#syncOf(name);
    const findings = sync.findings(desired);
    const feedback = this.#context.drivers.get(name)?.feedback;
    if (this.#isBeyond) feedback?.setClusterPools(findings);
    else feedback?.set(findings);
    for (const { reason, errorId, message } of sync.news(name, findings, now)) {
      log.warn({ errorId, driver: name, message }, "not all that a driver reports is published");
      notify({ type: "Warning", reason, message });
    }
  }

  #syncOf(driver: string): DriverSync {
    const sync = this.#syncs.get(driver) ?? new DriverSync(this.#context.clock);
    this.#syncs.set(driver, sync);
    return sync;
  }
}

const featuresOff = "API server does not store fields of devices that need features";
