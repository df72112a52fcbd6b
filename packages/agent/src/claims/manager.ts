import { randomBytes } from "node:crypto";
import {
  DeviceHealthReportDefinition,
  DevicePreparationDefinition,
} from "@nodekeeper/core/gen/nodekeeper/devices/v1alpha1/preparation.ts";
import type { KubeApiClient } from "@nodekeeper/core/kube";
import {
  type Clock,
  childScope,
  codeOf,
  type HealthCheck,
  type Logger,
  messageOf,
  type Registry,
  type Runnable,
  retryPolicies,
  type ScopedSignal,
  stopped,
  WakeableSleep,
  WorkQueue,
  type WorkQueueMetrics,
} from "@nodekeeper/core/lib";
import type { AddedTaints } from "../devices/index.ts";
import type { PluginHandler, PluginRegistration } from "../plugins/index.ts";
import type { ClaimStore } from "../state/index.ts";
import { ownerOf, type PreparedDevice } from "./cdi-file.ts";
import { CdiFolder } from "./cdi-folder.ts";
import { ClaimReader, type ClaimReference } from "./claim-reader.ts";
import { ClaimRecords } from "./claim-records.ts";
import { DriverClient } from "./driver-client.ts";
import { DriverHealth } from "./driver-health.ts";
import { HostFiles } from "./host-files.ts";
import { KubeletPlugin, removeStaleSockets } from "./kubelet-plugin.ts";
import { type ClaimMetrics, createClaimMetrics } from "./metrics.ts";
import { Preparation } from "./preparation.ts";
import type { DriverClaims } from "./status.ts";

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
  client: Pick<KubeApiClient, "resolve" | "get">;
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
  /** Taints of a driver's devices may have changed. */
  onTaints: (driver: string) => void;
  clock: Clock;
  log: Logger;
  registry: Registry;
  queueMetrics?: WorkQueueMetrics;
  /** How often the CDI folder is compared with the records without an event, milliseconds. Default 5 s. */
  checkIntervalMs?: number;
}

/** A driver that is connected now, with what is done for it. */
interface Connection {
  generation: number;
  client: DriverClient | undefined;
  health: DriverHealth | undefined;
  scope: ScopedSignal;
  /** What was left from before was done once, or tried. */
  reconciled: PromiseWithResolvers<void>;
  isReconciled: boolean;
}

interface DriverState {
  connection: Connection | undefined;
  /** It is the kubelet's plugin by itself, or has none of the agent's protocols. */
  isLeftAlone: boolean;
  /** Monotonic milliseconds; since the agent's start where it has not been connected. */
  disconnectedAt: number;
  plugin: KubeletPlugin | undefined;
  /** What went wrong last. */
  problem: string | undefined;
}

const WORKERS = 4;
const CHECK_INTERVAL_MS = 5_000;
const SLOW_REGISTRATION_MS = 60_000;
const REGISTRATION_WAIT_MS = 5_000;
const REGISTRATION_POLL_MS = 50;
// Of a driver's records at once, when it is back.
const MOST_AT_ONCE = 8;
const streamVersion = "nodekeeper.devices.v1alpha1";
const kubeletVersions = ["v1.DRAPlugin", "v1beta1.DRAPlugin"];

/**
 * The kubelet's DRA plugin in place of drivers that stream their devices: registers with the kubelet for each of them,
 * prepares claims by asking the driver, and keeps CDI files and records in line.
 */
export class ClaimManager implements Runnable, Pick<PluginHandler, "register" | "deregister"> {
  readonly name = "claims";
  readonly #options: ClaimManagerOptions;
  readonly #records: ClaimRecords;
  readonly #folder: CdiFolder;
  readonly #preparation: Preparation;
  readonly #queue: WorkQueue;
  readonly #metrics: ClaimMetrics;
  readonly #drivers = new Map<string, DriverState>();
  readonly #folderCheck = new WakeableSleep();
  readonly #tasks = new Set<Promise<void>>();
  readonly #instance = randomBytes(4).toString("hex");
  readonly #startedAt: number;
  readonly #stop = childScope();

  constructor(options: ClaimManagerOptions) {
    this.#options = options;
    const { clock, log, client, store, boot, cdiDirectory, hostRoot, hostPaths, registry, queueMetrics } =
      options;
    this.#startedAt = clock.monotonic();
    this.#records = new ClaimRecords(store, boot, clock);
    this.#folder = new CdiFolder(cdiDirectory);
    this.#preparation = new Preparation({
      reader: new ClaimReader(client),
      records: this.#records,
      folder: this.#folder,
      host: new HostFiles({ root: hostRoot, allowed: hostPaths }),
      connected: (driver) => this.#drivers.get(driver)?.connection,
      log,
    });
    this.#queue = new WorkQueue({
      name: "claims",
      clock,
      log,
      backoff: retryPolicies.claims,
      ...(queueMetrics ? { metrics: queueMetrics } : {}),
    });
    this.#metrics = createClaimMetrics(registry, {
      records: () => this.#records.drivers().flatMap((driver) => this.#records.of(driver)),
      plugins: () =>
        [...this.#drivers].flatMap(([driver, { plugin }]) =>
          plugin ? [{ driver, isRegistered: plugin.registration.state === "registered" }] : [],
        ),
    });
  }

  async register({ name, versions, endpoint, generation }: PluginRegistration): Promise<void> {
    const state = this.#stateOf(name);
    this.#disconnect(state, "registered again");
    state.isLeftAlone =
      !versions.includes(streamVersion) || versions.some((version) => kubeletVersions.includes(version));
    if (!state.isLeftAlone) state.connection = this.#connect(name, versions, endpoint, generation);
    this.#queue.add(name);
  }

  deregister({ name, generation }: PluginRegistration, reason: string): void {
    const state = this.#drivers.get(name);
    if (!state || (state.connection && state.connection.generation !== generation)) return;
    this.#disconnect(state, reason);
    this.#queue.add(name);
  }

  /**
   * Waits until the kubelet has registered the agent as a connected driver's plugin; 5 s at most, for the kubelet may be
   * down, and not at all where the driver is left alone. Rejects with the signal's reason.
   */
  async untilRegistered(driver: string, signal: AbortSignal): Promise<void> {
    const { clock } = this.#options;
    const endsAt = clock.monotonic() + REGISTRATION_WAIT_MS;
    const isWaiting = () => {
      const state = this.#drivers.get(driver);
      return state?.connection !== undefined && state.plugin?.registration.state !== "registered";
    };
    while (isWaiting() && clock.monotonic() < endsAt) await clock.sleep(REGISTRATION_POLL_MS, signal);
  }

  /** Taints of a driver's devices that are not healthy; the same object until one changes. */
  taints(driver: string): Pick<AddedTaints, "byDevice"> | undefined {
    const byDevice = this.#drivers.get(driver)?.connection?.health?.taints;
    return byDevice && { byDevice };
  }

  /** Every driver that the agent is the kubelet's plugin of, or has claims of, sorted by name. */
  status(): DriverClaims[] {
    const names = new Set([...this.#drivers.keys(), ...this.#records.drivers()]);
    return [...names].sort().map((driver) => {
      const state = this.#drivers.get(driver);
      const registration = state?.plugin?.registration;
      return {
        driver,
        kubelet: state?.isLeftAlone ? "ownPlugin" : (registration?.state ?? "none"),
        reason: registration?.state === "refused" ? registration.reason : undefined,
        isPreparing: state?.connection?.client !== undefined,
        problem: state?.problem ?? state?.connection?.health?.problem,
        unhealthy: state?.connection?.health?.unhealthy ?? [],
        claims: this.#records.of(driver).map(({ namespace, name, uid, state: of, devices, updatedAt }) => ({
          namespace,
          name,
          uid,
          state: of,
          updatedAt,
          devices: devices.map(({ pool, device }) => `${pool}/${device}`),
        })),
      };
    });
  }

  healthCheck(): HealthCheck {
    return { name: "KubeletPluginsRegistered", kind: "ready", check: () => this.#health() };
  }

  async run(signal: AbortSignal): Promise<void> {
    const onAbort = () => this.#stop.abort(signal.reason);
    signal.addEventListener("abort", onAbort, { once: true });
    try {
      await this.#adopt();
      await removeStaleSockets(this.#options.registryDirectory, this.#options.clock);
      for (const driver of this.#records.drivers()) {
        this.#stateOf(driver);
        this.#queue.add(driver);
        this.#queue.addAfter(driver, this.#options.settings().settleTimeMs);
      }
      await Promise.all([
        this.#queue.run(signal, WORKERS, (driver) => this.#sync(driver)),
        this.#watchFolder(signal),
      ]);
    } finally {
      signal.removeEventListener("abort", onAbort);
      this.#stop.abort(stopped("the agent is stopping"));
      for (const state of this.#drivers.values()) this.#disconnect(state, "the agent is stopping");
      await Promise.all([...this.#drivers.values()].map(({ plugin }) => plugin?.stop()));
      await Promise.all(this.#tasks);
    }
  }

  // Files whose records were lost with the state database. Whether their claims still exist is found out later.
  async #adopt(): Promise<void> {
    const { log } = this.#options;
    for (const { name, text } of await this.#folder.list()) {
      const owner = ownerOf(text);
      if (!owner || this.#folder.nameOf(owner.driver, owner.uid) !== name) {
        log.warn({ file: name }, "CDI file of no claim removed");
        await this.#folder.removeNamed(name);
      } else if (!this.#records.get(owner.driver, owner.uid)) {
        log.warn({ file: name }, "CDI file without a record: recorded again");
        this.#records.adopt(owner, text);
      }
    }
  }

  async #sync(driver: string): Promise<void> {
    const state = this.#stateOf(driver);
    const { connection } = state;
    try {
      await this.#reconcile(
        driver,
        this.#records.of(driver).map(({ uid }) => uid),
      );
      state.problem = undefined;
    } catch (error) {
      state.problem = messageOf(error);
      throw error;
    } finally {
      if (connection) connection.isReconciled = true;
      connection?.reconciled.resolve();
      await this.#keepPlugin(driver, state);
    }
  }

  async #reconcile(driver: string, uids: readonly string[]): Promise<void> {
    const waiting = [...uids];
    const failures: unknown[] = [];
    const work = async () => {
      for (let uid = waiting.shift(); uid !== undefined; uid = waiting.shift()) {
        await this.#preparation
          .reconcile(driver, uid, this.#stop.signal)
          .catch((error: unknown) => failures.push(error));
      }
    };
    await Promise.all(Array.from({ length: MOST_AT_ONCE }, work));
    if (failures.length > 0) throw failures[0];
  }

  // Starts or ends being the kubelet's plugin of a driver.
  async #keepPlugin(driver: string, state: DriverState): Promise<void> {
    const { clock, settings } = this.#options;
    const isWanted = !this.#stop.signal.aborted && this.#wantsPlugin(driver, state);
    const hasHealth = state.connection
      ? state.connection.health !== undefined
      : (state.plugin?.hasHealth ?? false);
    if (state.plugin && (!isWanted || state.plugin.hasHealth !== hasHealth)) {
      const { plugin } = state;
      state.plugin = undefined;
      await plugin.stop();
    }
    if (isWanted) state.plugin ??= this.#startPlugin(driver, hasHealth);
    if (state.connection || isWanted === false) {
      if (!state.connection && this.#records.of(driver).length === 0 && !state.isLeftAlone)
        this.#drivers.delete(driver);
      return;
    }
    const restMs = state.disconnectedAt + settings().wipeDelayMs - clock.monotonic();
    if (restMs > 0) this.#queue.addAfter(driver, restMs);
  }

  #wantsPlugin(driver: string, { connection, isLeftAlone, disconnectedAt }: DriverState): boolean {
    if (isLeftAlone) return false;
    if (connection) return connection.isReconciled;
    const { clock, settings } = this.#options;
    const { settleTimeMs, wipeDelayMs } = settings();
    const now = clock.monotonic();
    const records = this.#records.of(driver);
    // Pods would be started with devices that are not set up any more; after a while it is better to end them than to wait.
    const isWaiting =
      now < this.#startedAt + settleTimeMs && records.some((record) => this.#records.isOfOldBoot(record));
    if (isWaiting) return false;
    return records.length > 0 || (disconnectedAt > this.#startedAt && now < disconnectedAt + wipeDelayMs);
  }

  #startPlugin(driver: string, hasHealth: boolean): KubeletPlugin {
    const { registryDirectory, clock, log } = this.#options;
    return new KubeletPlugin({
      driver,
      registryDirectory,
      instance: this.#instance,
      hasHealth,
      prepare: (claim) => this.#prepare(driver, claim),
      unprepare: (claim) => this.#measured(driver, "unprepare", () => this.#unprepare(driver, claim)),
      health: (_request, { signal }) =>
        this.#watchHealth(driver, AbortSignal.any([signal, this.#stop.signal])),
      clock,
      log,
    });
  }

  #prepare(driver: string, claim: ClaimReference): Promise<readonly PreparedDevice[]> {
    return this.#measured(driver, "prepare", async () => {
      await this.#drivers.get(driver)?.connection?.reconciled.promise;
      return await this.#preparation.prepare(driver, claim, this.#stop.signal);
    });
  }

  async #unprepare(driver: string, claim: ClaimReference): Promise<void> {
    await this.#preparation.unprepare(driver, claim, this.#stop.signal);
  }

  async #measured<T>(driver: string, operation: string, work: () => Promise<T>): Promise<T> {
    const { clock, log } = this.#options;
    const startedAt = clock.monotonic();
    let result = "ok";
    try {
      return await work();
    } catch (error) {
      result = codeOf(error);
      log.warn({ driver, operation, err: error }, "a claim failed, the kubelet will ask again");
      throw error;
    } finally {
      this.#metrics.operations.inc({ driver, operation, result });
      this.#metrics.seconds.observe({ driver, operation }, (clock.monotonic() - startedAt) / 1_000);
    }
  }

  async *#watchHealth(driver: string, signal: AbortSignal) {
    const health = this.#drivers.get(driver)?.connection?.health;
    if (!health) return;
    for await (const { devices, at } of health.watch(signal)) {
      yield {
        devices: devices.map(({ pool, device, healthy, message }) => ({
          device: { poolName: pool, deviceName: device },
          health: healthy ? (1 as const) : (2 as const),
          lastUpdatedTime: BigInt(Math.floor(at / 1_000)),
          message,
        })),
      };
    }
  }

  #connect(driver: string, versions: readonly string[], endpoint: string, generation: number): Connection {
    const { clock, log, nodeName, settings, onTaints } = this.#options;
    const scope = childScope(this.#stop.signal);
    const isPreparing = versions.includes(DevicePreparationDefinition.fullName);
    const health = versions.includes(DeviceHealthReportDefinition.fullName)
      ? new DriverHealth({ driver, endpoint, nodeName, onChange: () => onTaints(driver), clock, log })
      : undefined;
    if (health) this.#track(health.run(scope.signal));
    return {
      generation,
      client: isPreparing
        ? new DriverClient({ driver, endpoint, deadlineMs: () => settings().callTimeoutMs, clock })
        : undefined,
      health,
      scope,
      reconciled: Promise.withResolvers(),
      isReconciled: false,
    };
  }

  #disconnect(state: DriverState, reason: string): void {
    const { connection } = state;
    if (!connection) return;
    state.connection = undefined;
    state.disconnectedAt = this.#options.clock.monotonic();
    connection.reconciled.resolve();
    connection.scope.abort(stopped(reason));
    connection.scope.release();
    connection.client?.close();
  }

  #track(task: Promise<void>): void {
    const tracked = task.finally(() => this.#tasks.delete(tracked));
    this.#tasks.add(tracked);
  }

  // A reboot, or a person, empties the folder; what the kubelet takes for prepared must be there.
  async #watchFolder(signal: AbortSignal): Promise<void> {
    const { clock, checkIntervalMs = CHECK_INTERVAL_MS, log } = this.#options;
    while (!signal.aborted) {
      using watching = childScope(signal);
      this.#folder.watch(() => this.#folderCheck.wake(), watching.signal);
      try {
        await this.#folderCheck.wait(clock, checkIntervalMs, signal);
        this.#folderCheck.clear();
        await this.#checkFolder();
      } catch (error) {
        if (!signal.aborted) log.warn({ err: error }, "CDI folder can't be compared with the records");
      } finally {
        watching.abort();
      }
    }
  }

  async #checkFolder(): Promise<void> {
    const drivers = this.#records.drivers();
    if (drivers.length === 0) return;
    const names = await this.#folder.names();
    for (const driver of drivers) {
      const isMissing = this.#records
        .of(driver)
        .some(
          (record) =>
            record.state === "prepared" &&
            record.cdi !== "" &&
            !this.#records.isOfOldBoot(record) &&
            !names.has(this.#folder.nameOf(driver, record.uid)),
        );
      if (isMissing) this.#queue.add(driver);
    }
  }

  #stateOf(driver: string): DriverState {
    const known = this.#drivers.get(driver);
    if (known) return known;
    const state: DriverState = {
      connection: undefined,
      isLeftAlone: false,
      disconnectedAt: this.#startedAt,
      plugin: undefined,
      problem: undefined,
    };
    this.#drivers.set(driver, state);
    return state;
  }

  #health(): { ok: boolean; message: string } {
    const now = this.#options.clock.now();
    const plugins = [...this.#drivers].flatMap(([driver, { plugin }]) =>
      plugin ? [{ driver, plugin }] : [],
    );
    const failing = plugins.filter(
      ({ plugin: { registration, startedAt } }) =>
        registration.state !== "registered" && now - startedAt >= SLOW_REGISTRATION_MS,
    );
    const names = failing.map(({ driver, plugin: { registration } }) =>
      registration.state === "refused"
        ? `${driver}: ${registration.reason}`
        : `${driver}: the kubelet has not found ${this.#options.registryDirectory}`,
    );
    return {
      // One driver's trouble is its own; where the kubelet takes none, the agent or its mounts are suspect.
      ok: failing.length === 0 || failing.length < plugins.length,
      message:
        names.length > 0
          ? `not registered with the kubelet: ${names.join("; ")}`
          : `${plugins.length} drivers`,
    };
  }
}
