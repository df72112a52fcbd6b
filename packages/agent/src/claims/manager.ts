import { ClaimInUse } from "@nodekeeper/api/errors";
import { removeStaleSockets } from "@nodekeeper/core/grpc";
import {
  childScope,
  type HealthCheck,
  type InotifyWatches,
  messageOf,
  type Registry,
  type Runnable,
  retryPolicies,
  Semaphore,
  stopped,
  WorkQueue,
  type WorkQueueMetrics,
} from "@nodekeeper/core/lib";
import type { DriverPreparation } from "../devices/index.ts";
import type { PodLifecycleEventGenerator } from "../lifecycle/index.ts";
import type { PluginExchanges, PluginHandler, PluginRegistration } from "../plugins/index.ts";
import type { AllocationReports } from "./allocation-reports.ts";
import { CdiCheck } from "./cdi-check.ts";
import { CdiDirectory } from "./cdi-directory.ts";
import { ClaimAllocations } from "./claim-allocations.ts";
import type { ClaimProblems } from "./claim-problems.ts";
import { ClaimReader, type ClaimReaderClient } from "./claim-reader.ts";
import type { ClaimRecords } from "./claim-records.ts";
import type { ClaimStatuses } from "./claim-statuses.ts";
import type { DriverContext } from "./context.ts";
import { DriverReturn } from "./driver-return.ts";
import type { DriverStates } from "./driver-state.ts";
import { EndedClaims } from "./ended-claims.ts";
import { HostFiles } from "./host-files.ts";
import { KubeletCalls } from "./kubelet-calls.ts";
import { isSocketName } from "./kubelet-plugin.ts";
import { KubeletPlugins, registrationHealth } from "./kubelet-plugins.ts";
import { createClaimMetrics } from "./metrics.ts";
import { OwnPlugins } from "./own-plugins.ts";
import { PodAccounts } from "./pod-accounts.ts";
import { Preparation } from "./preparation.ts";
import { ReservedPods } from "./reserved-pods.ts";
import type { StandbyPlugins } from "./standby-plugins.ts";
import { type DriverClaims, driverClaims } from "./status.ts";

/** What the module takes from the agent. */
export interface ClaimSources
  extends Pick<DriverContext, "records" | "drivers" | "settings" | "reportedDevice" | "clock" | "log"> {
  client: ClaimReaderClient;
  statuses: ClaimStatuses;
  allocations: AllocationReports;
  problems: ClaimProblems;
  /** Where the agent sees the host's root directory. */
  hostRoot: string;
  /** Pods as the container runtime reports them; undefined if `lifecycle.enabled` is false. */
  pods: Pick<PodLifecycleEventGenerator, "readNow" | "events"> | undefined;
  /**
   * Returns the service account of a pod by its UID, from a watch; undefined if it is not known. Default: service
   * accounts are read from the API server.
   */
  serviceAccountOf?: ((uid: string) => string | undefined) | undefined;
}

export interface ClaimManagerOptions {
  /**
   * Returns the devices of claims that running pods use, as `<driver>/<pool>/<device>`. Rejects if the kubelet does not
   * respond.
   */
  devicesInUse: (signal: AbortSignal) => Promise<ReadonlySet<string>>;
  /** Plugins that registered with the kubelet before the agent could start. Default: none. */
  standby?: StandbyPlugins | undefined;
  registry: Registry;
  queueMetrics?: WorkQueueMetrics;
  /** Starts the watches of directories. Default: separate instances that do not log. */
  watches?: InotifyWatches;
}

// Unlimited, so that a driver that does not answer does not delay others.
const WORKERS = Number.POSITIVE_INFINITY;
// Records of one driver that are reconciled concurrently.
const MOST_AT_ONCE = 8;
// How often a disconnected driver with claims is checked.
const LOOK_AGAIN_MS = 30_000;

/**
 * The kubelet's DRA plugin on behalf of drivers that stream their devices: registers with the kubelet for each driver,
 * prepares claims by calling the driver, and reconciles CDI files and records.
 */
export class ClaimManager implements Runnable, Pick<PluginHandler, "register" | "deregister"> {
  readonly name = "claims";
  readonly #sources: ClaimSources;
  readonly #standby: StandbyPlugins | undefined;
  readonly #records: ClaimRecords;
  readonly #preparation: Preparation;
  readonly #ended: EndedClaims;
  readonly #reserved: ReservedPods | undefined;
  readonly #queue: WorkQueue;
  readonly #calls: KubeletCalls;
  readonly #drivers: DriverStates;
  readonly #cdiCheck: CdiCheck;
  readonly #plugins: KubeletPlugins;
  readonly #ownPlugins: OwnPlugins;
  readonly #stop = childScope();

  constructor(sources: ClaimSources, options: ClaimManagerOptions) {
    this.#sources = sources;
    const { clock, drivers, log, pods, records } = sources;
    const { devicesInUse, queueMetrics: metrics, registry, standby, watches } = options;
    this.#standby = standby;
    this.#queue = new WorkQueue({ name: "claims", clock, log, backoff: retryPolicies.claims, metrics });
    const context = contextOf(sources, { queue: this.#queue, stop: this.#stop.signal }, watches);
    const preparation = new Preparation(context);
    this.#records = records;
    this.#drivers = drivers;
    this.#preparation = preparation;
    this.#cdiCheck = new CdiCheck(context);
    this.#ended = new EndedClaims({ ...context, preparation, devicesInUse });
    this.#reserved = pods && new ReservedPods({ ...context, events: pods.events, queueMetrics: metrics });
    this.#calls = new KubeletCalls({
      ...context,
      preparation,
      driverReturn: new DriverReturn(context),
      metrics: createClaimMetrics(registry, context),
    });
    this.#plugins = new KubeletPlugins({ ...context, calls: this.#calls, watches });
    this.#ownPlugins = new OwnPlugins({ ...context, preparation });
  }

  async register(registration: PluginRegistration): Promise<void> {
    this.#drivers.connect(registration, this.#stop.signal);
    this.#queue.add(registration.name);
  }

  deregister({ name, generation }: PluginRegistration, reason: string): void {
    const state = this.#drivers.get(name);
    if (!state || (state.connection && state.connection.generation !== generation)) return;
    this.#drivers.disconnect(name, reason);
    this.#queue.add(name);
  }

  /** Returns whether a claim is recorded that only this driver can unprepare. */
  hasClaims(driver: string): boolean {
    return this.#records.of(driver).length > 0;
  }

  /**
   * Returns how claims on a connected driver's devices are prepared. `untilReady` waits as `DriverStates.untilReady`
   * does: otherwise the first pods would reach a kubelet that has not registered the driver yet, and be retried after
   * 90 s.
   */
  preparationOf(driver: string): DriverPreparation {
    const { reportedDevice } = this.#sources;
    return {
      // Containers receive device metadata only if the kubelet calls the plugin.
      needsNoPreparation: !reportedDevice && (this.#drivers.get(driver)?.needsNoPreparation ?? false),
      untilReady: (signal) => this.#drivers.untilReady(driver, signal),
    };
  }

  /**
   * Returns the status of all drivers that are registered, were recently, or have claims, sorted by name. Includes
   * drivers that register their own plugin with the kubelet.
   */
  status(): DriverClaims[] {
    const names = new Set([...this.#drivers.list().map(({ name }) => name), ...this.#records.drivers()]);
    return [...names].sort().map((driver) => {
      const { statuses, allocations, problems } = this.#sources;
      const unreported = statuses.problemOf(driver) ?? allocations.problemOf(driver);
      const problem = unreported ?? problems.of(driver)[0]?.message;
      return driverClaims(driver, this.#drivers.get(driver), this.#records.of(driver), problem);
    });
  }

  /** The most recent calls to a driver. Undefined if it is disconnected or prepares no devices. */
  exchanges(driver: string): PluginExchanges | undefined {
    return this.#drivers.get(driver)?.connection?.client?.exchanges.show();
  }

  healthChecks(): HealthCheck[] {
    const { clock } = this.#sources;
    const registered = () => registrationHealth(this.#drivers.list(), this.#registryDirectory, clock.now());
    return [
      { name: "KubeletPluginsRegistered", kind: "ready", check: registered },
      { name: "CdiDirectoryReady", kind: "ready", check: () => this.#cdiCheck.health() },
    ];
  }

  async run(signal: AbortSignal): Promise<void> {
    const onAbort = () => void this.#calls.ended().then(() => this.#stop.abort(signal.reason));
    signal.addEventListener("abort", onAbort, { once: true });
    try {
      await this.#cdiCheck.start();
      await removeStaleSockets(this.#registryDirectory, isSocketName, this.#sources.clock);
      for (const driver of this.#records.drivers()) this.#drivers.of(driver);
      this.#takeStandby();
      for (const { name } of this.#drivers.list()) this.#queue.add(name);
      await Promise.all([
        this.#queue.run(signal, WORKERS, (driver) => this.#sync(driver)),
        this.#cdiCheck.run(signal),
        this.#ended.run(signal),
        this.#sources.statuses.run(signal),
        this.#sources.allocations.run(signal),
        this.#reserved?.run(signal),
      ]);
    } finally {
      signal.removeEventListener("abort", onAbort);
      await this.#calls.ended();
      this.#stop.abort(stopped("the agent is stopping"));
      await this.#drivers.stop();
    }
  }

  get #registryDirectory(): string {
    return this.#sources.settings().kubeletPlugin.registryDirectory;
  }

  #takeStandby(): void {
    const standby = this.#standby;
    if (!standby) return;
    for (const driver of standby.drivers) this.#drivers.serves(driver, standby.take(driver));
    standby.activate(this.#calls);
  }

  async #sync(driver: string): Promise<void> {
    const state = this.#drivers.of(driver);
    const { connection } = state;
    let problem: string | undefined;
    try {
      await this.#plugins.keep(state);
      const restored = connection?.client?.restore(this.#stop.signal) ?? Promise.resolve();
      await restored.finally(() => this.#reconcile(driver));
      if (await this.#ownPlugins.look(state, this.#stop.signal)) this.#queue.addAfter(driver, LOOK_AGAIN_MS);
    } catch (error) {
      problem = messageOf(error);
      throw error;
    } finally {
      this.#drivers.reconciled(driver, connection, problem);
      await this.#plugins.keep(state);
    }
  }

  async #reconcile(driver: string): Promise<void> {
    const limit = new Semaphore({ permits: MOST_AT_ONCE });
    const records = this.#records.of(driver);
    const { signal } = this.#stop;
    const lost = records.filter((record) => record.state === "prepared" && this.#records.isLost(record));
    await Promise.all(lost.map(({ uid }) => this.#preparation.withdrawIfLost(driver, uid, signal)));
    const done = await Promise.allSettled(
      records.map(({ uid }) =>
        limit.run(this.#stop.signal, () => this.#preparation.reconcile(driver, uid, this.#stop.signal)),
      ),
    );
    for (const each of done) if (each.status === "rejected") throw each.reason;
  }
}

function contextOf(
  {
    client,
    hostRoot: root,
    statuses: _statuses,
    allocations: _allocations,
    serviceAccountOf: known,
    ...sources
  }: ClaimSources,
  parts: Pick<DriverContext, "queue" | "stop">,
  watches: InotifyWatches | undefined,
): DriverContext {
  const { pods, records, settings, clock, log } = sources;
  const { cdiDirectory, metadataDirectory, hostPaths: allowed, exemptRootDrivers } = settings().kubeletPlugin;
  if (!pods)
    log.warn(
      { errorId: ClaimInUse.id },
      "lifecycle is disabled: the container runtime is not read, and only the kubelet can state that a device is free",
    );
  return {
    ...sources,
    ...parts,
    allocations: new ClaimAllocations(
      new ClaimReader(client),
      records,
      new PodAccounts({ client, known, clock, log }),
    ),
    directory: new CdiDirectory(cdiDirectory, metadataDirectory, watches),
    host: new HostFiles({ root, allowed, exemptRootDrivers }),
  };
}
