import { parsingWith } from "@nodekeeper/core/kube";
import {
  type HealthCheck,
  parseWithBigInts,
  type Registry,
  type Runnable,
  sleepOrAbort,
  WorkQueue,
  type WorkQueueMetrics,
} from "@nodekeeper/core/lib";
import type { Device } from "../model/model.ts";
import { ClusterPools } from "./cluster-pools.ts";
import { type DeviceContext, EVERY_DRIVER, type SyncContext, taintDelayOf } from "./context.ts";
import type { PresentProblem } from "./driver-feedback.ts";
import { Drivers } from "./drivers.ts";
import { sliceHealth, streamHealth } from "./health.ts";
import { createDeviceMetrics } from "./metrics.ts";
import { NodeUid } from "./node-uid.ts";
import { publishedPools } from "./published-pools.ts";
import { Sessions } from "./session.ts";
import { listSlices } from "./slice-api.ts";
import { SliceSync } from "./slice-sync.ts";
import { type DriverStatus, driverStatus, type PublishedDevice, slicesByDevice } from "./status.ts";

export interface DeviceSyncOptions {
  /** Each registry serves only one `DeviceSync`. */
  registry: Registry;
  queueMetrics?: WorkQueueMetrics;
}

const ABSENT_RETRY_MS = 1_000;

/** Publishes what drivers stream as the node's ResourceSlices, so that drivers need no access to the API server. */
export class DeviceSync implements Runnable {
  readonly name = "devices";
  /** Handles the registrations of drivers. */
  readonly handler: Drivers;
  readonly #context: SyncContext;
  readonly #sessions: Sessions;
  readonly #slices: SliceSync;
  readonly #clusterPools: ClusterPools;

  constructor(agent: DeviceContext, { registry, queueMetrics: metrics }: DeviceSyncOptions) {
    // Preserves integers beyond 2^53 when slices are compared and written.
    const client = parsingWith(agent.client, parseWithBigInts);
    const { clock, log, nodeName } = agent;
    const common = {
      ...agent,
      client,
      nodeUid: new NodeUid(client, nodeName),
      metrics: createDeviceMetrics(registry, () => this.status()),
    };
    const context: SyncContext = {
      ...common,
      scope: { nodeName, driver: undefined },
      queue: new WorkQueue({ name: "devices", untimed: EVERY_DRIVER, clock, log, metrics }),
    };
    this.#context = context;
    const add = (driver: string) => {
      context.queue.add(driver);
      this.#clusterPools.add(driver);
    };
    const drivers = new Drivers({ ...context, queue: { add } });
    this.#clusterPools = new ClusterPools(common, drivers, () => this.version !== "v1alpha2");
    this.handler = drivers;
    this.#sessions = new Sessions({ ...context, drivers });
    this.#slices = new SliceSync({ ...context, drivers, sessions: this.#sessions });
  }

  async run(signal: AbortSignal): Promise<void> {
    const { clock, settings } = this.#context;
    const startup = clock.after(settings().settleTime, () => {
      this.handler.startupOver();
      this.#slices.startupOver();
    });
    try {
      await Promise.all([
        this.#slices.run(signal),
        this.#sessions.run(signal),
        this.#taintAbsent(signal),
        this.#clusterPools.run(signal),
      ]);
    } finally {
      startup.cancel();
      await this.handler.stop();
    }
  }

  /** Drivers that are registered or were recently, sorted by name. */
  status(): DriverStatus[] {
    const cache = this.#sessions.current?.cache;
    return this.handler.list().map((driver) => {
      const { name } = driver;
      const slices = { slices: cache?.of(name) ?? [], foreign: cache?.foreignOf(name) ?? [] };
      const desired = this.#slices.desired(name);
      return driverStatus(driver, slices, desired, this.#slices.syncOf(name), this.#clusterPools.of(name));
    });
  }

  /** What is not published or accepted as a driver reported it. Empty if the driver is unknown. */
  problemsOf(driver: string): readonly PresentProblem[] {
    return this.handler.get(driver)?.feedback.present ?? [];
  }

  /** The valid devices of a driver, with the slices that contain them. Empty if the driver is unknown. */
  devicesOf(driver: string): PublishedDevice[] {
    const cluster = this.#clusterPools.of(driver);
    const ofNode = this.#sessions.current?.cache.of(driver) ?? [];
    const slices = slicesByDevice([...ofNode, ...(cluster?.slices ?? [])]);
    const pools = [this.#slices.desired(driver), cluster?.desired].flatMap((desired) => desired?.pools ?? []);
    return pools.flatMap(({ name: pool, devices }) =>
      devices.map(({ name, device }) => ({ pool, device, slices: slices.get(`${pool}/${name}`) ?? [] })),
    );
  }

  /**
   * A device as its driver last reported it to this agent, including attributes that the API server may not store.
   * Undefined if the driver publishes its ResourceSlices itself, is unknown, or has not reported such a device.
   */
  reportedDevice(driver: string, pool: string, device: string): Device | undefined {
    return this.handler.get(driver)?.device(pool, device);
  }

  /** See `SliceSync.onDevicesKnown`. */
  onDevicesKnown(callback: () => void): () => void {
    return this.#slices.onDevicesKnown(callback);
  }

  /** The API version of ResourceSlices in use; undefined without a session. */
  get version(): string | undefined {
    return this.#sessions.current?.api.version;
  }

  healthChecks(): HealthCheck[] {
    const now = () => this.#context.clock.monotonic();
    const streams = () => streamHealth(this.handler.list(), now());
    const problemOf = (driver: string) =>
      this.#slices.syncOf(driver)?.problem ?? this.#clusterPools.of(driver)?.sync?.problem;
    const slices = () => sliceHealth(this.handler.list(), this.#sessions, problemOf, now());
    return [
      { name: "DeviceStreamsReady", kind: "ready", check: streams },
      { name: "DeviceSlicesPublished", kind: "ready", check: slices },
    ];
  }

  // Taints devices of drivers that disconnected while the agent was not running: pods on them could not start.
  async #taintAbsent(signal: AbortSignal): Promise<void> {
    const { clock, log, settings } = this.#context;
    const { settleTime } = settings();
    const taintDelayMs = taintDelayOf(settings());
    const endsAt = clock.monotonic() + settleTime;
    if (taintDelayMs >= settleTime) return;
    await sleepOrAbort(clock, taintDelayMs, signal);
    while (!signal.aborted && clock.monotonic() < endsAt) {
      try {
        if (await this.#adoptAbsent(signal)) return;
      } catch (error) {
        if (signal.aborted) return;
        log.warn({ err: error }, "failed to read the slices of drivers that are not registered, retrying");
      }
      await sleepOrAbort(clock, ABSENT_RETRY_MS, signal);
    }
  }

  // Returns false if the published slices are not known yet.
  async #adoptAbsent(signal: AbortSignal): Promise<boolean> {
    const { client, nodeName, scope } = this.#context;
    const session = this.#sessions.current;
    if (!session?.cache.isSynced) return false;
    const isAbsent = (driver: string) => this.handler.get(driver) === undefined;
    if (![...session.cache.drivers()].some(isAbsent)) return true;
    const { api } = session;
    // Full objects, because the slices are written again with a taint.
    const { items } = await listSlices(client, api, scope, signal);
    for (const [driver, pools] of publishedPools(api, items, nodeName))
      if (isAbsent(driver)) this.handler.adopt(driver, pools);
    return true;
  }
}
