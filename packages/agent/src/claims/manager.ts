import {
  type Clock,
  childScope,
  codeOf,
  errorIdOf,
  type HealthCheck,
  type Logger,
  messageOf,
  NodekeeperError,
  type Registry,
  type Runnable,
  retryPolicies,
  stopped,
  WorkQueue,
  type WorkQueueMetrics,
} from "@nodekeeper/core/lib";
import type { AddedTaints } from "../devices/index.ts";
import type { PluginExchanges, PluginHandler, PluginRegistration } from "../plugins/index.ts";
import type { ClaimStore } from "../state/index.ts";
import type { PreparedDevice } from "./cdi-file.ts";
import { CdiFolder } from "./cdi-folder.ts";
import { ClaimReader, type ClaimReaderClient, type ClaimReference } from "./claim-reader.ts";
import { ClaimRecords } from "./claim-records.ts";
import { DriverStates } from "./driver-state.ts";
import { EndedClaims } from "./ended-claims.ts";
import { FolderCheck } from "./folder-check.ts";
import { HostFiles } from "./host-files.ts";
import { removeStaleSockets } from "./kubelet-plugin.ts";
import { KubeletPlugins } from "./kubelet-plugins.ts";
import { type ClaimMetrics, createClaimMetrics } from "./metrics.ts";
import { Preparation } from "./preparation.ts";
import { registrationHealth } from "./registration-health.ts";
import { type DriverClaims, driverClaims } from "./status.ts";

/** Times in milliseconds. */
export interface ClaimSettings {
  /** Of a driver's PrepareDevices and UnprepareDevices. */
  callTimeoutMs: number;
  /** How long a disconnected driver without prepared claims stays registered with the kubelet. */
  wipeDelayMs: number;
  /** After the start, how long the kubelet waits for drivers whose claims have to be prepared again. */
  settleTimeMs: number;
}

export interface ClaimManagerOptions {
  client: ClaimReaderClient;
  store: ClaimStore;
  /** ID of the machine's boot. */
  boot: string;
  nodeName: string;
  registryDirectory: string;
  cdiDirectory: string;
  /** Where the host's files are found. */
  hostRoot: string;
  /** What drivers' edits may name on the host lies in one of these folders. */
  hostPaths: readonly string[];
  settings: () => ClaimSettings;
  /** The devices of claims that running pods use, as `<driver>/<pool>/<device>`. Rejects where the kubelet does not answer. */
  devicesInUse: (signal: AbortSignal) => Promise<ReadonlySet<string>>;
  /** Taints of a driver's devices may have changed. */
  onTaints: (driver: string) => void;
  clock: Clock;
  log: Logger;
  registry: Registry;
  queueMetrics?: WorkQueueMetrics;
  /** How often the CDI folder is compared with the records without an event, milliseconds. Default 5 s. */
  checkIntervalMs?: number;
}

const WORKERS = 4;
// Of a driver's records at once, when it is back.
const MOST_AT_ONCE = 8;

/**
 * The kubelet's DRA plugin in place of drivers that stream their devices: registers with the kubelet for each of them,
 * prepares claims by asking the driver, and keeps CDI files and records in line.
 */
export class ClaimManager implements Runnable, Pick<PluginHandler, "register" | "deregister"> {
  readonly name = "claims";
  readonly #options: ClaimManagerOptions;
  readonly #records: ClaimRecords;
  readonly #preparation: Preparation;
  readonly #ended: EndedClaims;
  readonly #queue: WorkQueue;
  readonly #metrics: ClaimMetrics;
  readonly #drivers: DriverStates;
  readonly #folderCheck: FolderCheck;
  readonly #plugins: KubeletPlugins;
  readonly #stop = childScope();

  constructor(options: ClaimManagerOptions) {
    this.#options = options;
    const { clock, log, client, store, boot, hostRoot, hostPaths, registry, queueMetrics } = options;
    this.#records = new ClaimRecords(store, boot, clock);
    this.#drivers = new DriverStates({
      ...options,
      callTimeoutMs: () => options.settings().callTimeoutMs,
    });
    const folder = new CdiFolder(options.cdiDirectory);
    this.#folderCheck = new FolderCheck({
      folder,
      records: this.#records,
      onDifference: (driver) => this.#queue.add(driver),
      intervalMs: options.checkIntervalMs,
      clock,
      log,
    });
    this.#preparation = new Preparation({
      reader: new ClaimReader(client),
      records: this.#records,
      folder,
      host: new HostFiles({ root: hostRoot, allowed: hostPaths }),
      connected: (driver) => this.#drivers.get(driver)?.connection,
      onLeft: (driver) => this.#queue.add(driver),
      log,
    });
    this.#ended = new EndedClaims({
      records: this.#records,
      preparation: this.#preparation,
      devicesInUse: options.devicesInUse,
      clock,
      log,
    });
    this.#queue = new WorkQueue({
      name: "claims",
      clock,
      log,
      backoff: retryPolicies.claims,
      ...(queueMetrics ? { metrics: queueMetrics } : {}),
    });
    this.#plugins = new KubeletPlugins({
      ...options,
      drivers: this.#drivers,
      records: this.#records,
      stop: this.#stop.signal,
      keepAgainIn: (driver, ms) => this.#queue.addAfter(driver, ms),
      prepare: (driver, claim) => this.#prepare(driver, claim),
      unprepare: (driver, claim) => this.#unprepare(driver, claim),
    });
    this.#metrics = createClaimMetrics(registry, {
      records: () => this.#records.drivers().flatMap((driver) => this.#records.of(driver)),
      plugins: () =>
        this.#drivers
          .list()
          .flatMap(({ name, plugin }) =>
            plugin ? [{ driver: name, isRegistered: plugin.registration.state === "registered" }] : [],
          ),
    });
  }

  async register(registration: PluginRegistration): Promise<void> {
    this.#drivers.connect(registration, this.#stop.signal);
    this.#queue.add(registration.name);
  }

  deregister({ name, generation }: PluginRegistration, reason: string): void {
    const state = this.#drivers.get(name);
    if (!state || (state.connection && state.connection.generation !== generation)) return;
    this.#drivers.disconnect(state, reason);
    this.#queue.add(name);
  }

  /** Whether a driver's devices are allocated without any preparation. */
  needsNoPreparation(driver: string): boolean {
    return this.#drivers.get(driver)?.needsNoPreparation ?? false;
  }

  /**
   * As `DriverStates.untilReady`: else the first pods meet a kubelet that does not know the driver yet, and are tried again
   * after 90 s.
   */
  async untilReady(driver: string, signal: AbortSignal): Promise<void> {
    await this.#drivers.untilReady(driver, signal);
  }

  /** Taints of a driver's devices that are not healthy; the same object until one changes. */
  taints(driver: string): Pick<AddedTaints, "byDevice"> | undefined {
    return this.#drivers.taints(driver);
  }

  /** Every driver that the agent is the kubelet's plugin of, or has claims of, sorted by name. */
  status(): DriverClaims[] {
    const names = new Set([...this.#drivers.list().map(({ name }) => name), ...this.#records.drivers()]);
    return [...names].sort().map((driver) => {
      const podsOf = (uid: string) => this.#records.podsOf(driver, uid);
      return driverClaims(driver, this.#drivers.get(driver), this.#records.of(driver), podsOf);
    });
  }

  /** The last calls to a driver; undefined where it is not connected, or prepares nothing. */
  exchanges(driver: string): PluginExchanges | undefined {
    return this.#drivers.get(driver)?.connection?.client?.exchanges.show();
  }

  healthChecks(): HealthCheck[] {
    const { clock, registryDirectory } = this.#options;
    const registered = () => registrationHealth(this.#drivers.list(), registryDirectory, clock.now());
    return [
      { name: "KubeletPluginsRegistered", kind: "ready", check: registered },
      { name: "CdiFolderReady", kind: "ready", check: () => this.#folderCheck.health() },
    ];
  }

  async run(signal: AbortSignal): Promise<void> {
    const onAbort = () => this.#stop.abort(signal.reason);
    signal.addEventListener("abort", onAbort, { once: true });
    try {
      await this.#folderCheck.start();
      await removeStaleSockets(this.#options.registryDirectory, this.#options.clock);
      for (const driver of this.#records.drivers()) {
        this.#drivers.of(driver);
        this.#queue.add(driver);
      }
      await Promise.all([
        this.#queue.run(signal, WORKERS, (driver) => this.#sync(driver)),
        this.#folderCheck.run(signal),
        this.#ended.run(signal),
      ]);
    } finally {
      signal.removeEventListener("abort", onAbort);
      this.#stop.abort(stopped("the agent is stopping"));
      await this.#drivers.stop();
    }
  }

  async #sync(driver: string): Promise<void> {
    const state = this.#drivers.of(driver);
    const { connection } = state;
    try {
      await this.#reconcile(driver);
      state.problem = undefined;
    } catch (error) {
      state.problem = messageOf(error);
      throw error;
    } finally {
      if (connection) connection.isReconciled = true;
      connection?.reconciled.resolve();
      await this.#plugins.keep(state);
    }
  }

  async #reconcile(driver: string): Promise<void> {
    const waiting = this.#records.of(driver);
    const failures: unknown[] = [];
    const work = async () => {
      for (let record = waiting.shift(); record; record = waiting.shift()) {
        await this.#preparation
          .reconcile(driver, record.uid, this.#stop.signal)
          .catch((error: unknown) => failures.push(error));
      }
    };
    await Promise.all(Array.from({ length: MOST_AT_ONCE }, work));
    if (failures.length > 0) throw failures[0];
  }

  #prepare(driver: string, claim: ClaimReference): Promise<readonly PreparedDevice[]> {
    return this.#measured(driver, "prepare", async () => {
      await this.#drivers.get(driver)?.connection?.reconciled.promise;
      return await this.#preparation.prepare(driver, claim, this.#stop.signal);
    });
  }

  #unprepare(driver: string, claim: ClaimReference): Promise<void> {
    return this.#measured(driver, "unprepare", () =>
      this.#preparation.unprepare(driver, claim, this.#stop.signal),
    );
  }

  async #measured<T>(driver: string, operation: string, work: () => Promise<T>): Promise<T> {
    const { clock, log } = this.#options;
    const startedAt = clock.monotonic();
    let result = "ok";
    try {
      return await work();
    } catch (error) {
      result = codeOf(error);
      const failure = errorIdOf(error)
        ? error
        : new NodekeeperError(codeOf(error), messageOf(error), { id: "NK1510", cause: error });
      log.warn({ driver, operation, err: failure }, "a claim failed, the kubelet will ask again");
      throw failure;
    } finally {
      this.#metrics.operations.inc({ driver, operation, result });
      this.#metrics.seconds.observe({ driver, operation }, (clock.monotonic() - startedAt) / 1_000);
    }
  }
}
