import type { ApiResource, EventInput, KubeApiClient, Watcher, WatchHandler } from "@nodekeeper/core/kube";
import type {
  Clock,
  HealthCheck,
  Logger,
  LoopTurns,
  Registry,
  Runnable,
  WorkQueueMetrics,
} from "@nodekeeper/core/lib";
import type { PluginHandler } from "../../plugins/index.ts";
import type { Device } from "../model/model.ts";
import type { AddedTaints } from "../plan/added-taints.ts";
import { type DriverSettings, Drivers } from "./drivers.ts";
import { sliceHealth, streamHealth } from "./health.ts";
import { createDeviceMetrics, type DeviceMetrics } from "./metrics.ts";
import { NodeUid } from "./node-uid.ts";
import { publishedPools } from "./published-pools.ts";
import { Sessions } from "./session.ts";
import { fieldSelectorOf } from "./slice-api.ts";
import { SliceQueue } from "./slice-queue.ts";
import { type DriverStatus, driverStatus, type PublishedDevice, slicesByDevice } from "./status.ts";

/** Times in milliseconds. */
export interface DeviceSettings extends DriverSettings {
  /** The least time between two rounds of writes of one driver; what it reports meanwhile is written together. */
  minWriteIntervalMs: number;
  /** After the start, how long drivers may take to register again before their slices are deleted. */
  settleTimeMs: number;
}

export interface DeviceSyncOptions {
  client: KubeApiClient;
  watch: (resource: ApiResource, selectors: { fieldSelector: string }, handler: WatchHandler) => Watcher;
  nodeName: string;
  settings: () => DeviceSettings;
  notify: (event: Pick<EventInput, "type" | "reason" | "message">) => void;
  /** Taints that devices get beside those that their driver reports; another object after each change. */
  taints?: (driver: string) => Pick<AddedTaints, "byDevice"> | undefined;
  /** Resolves when pods can be bound to a driver's devices, as `DriversOptions.untilReady`. Default: at once. */
  untilReady?: ((driver: string, signal: AbortSignal) => Promise<void>) | undefined;
  /** Whether a driver's devices need no preparation. Default: unknown, so that the kubelet calls its plugin. */
  needsNoPreparation?: ((driver: string) => boolean) | undefined;
  /** For messages of many devices. */
  turns: LoopTurns;
  clock: Clock;
  log: Logger;
  /** One sync for each registry. */
  registry: Registry;
  queueMetrics?: WorkQueueMetrics;
  /**
   * How often the slices are compared with the server's in full, and the server's version and features are checked,
   * milliseconds. Default 10 min.
   */
  recheckMs?: number;
  random?: () => number;
}

const ABSENT_RETRY_MS = 1_000;

/** Keeps the node's ResourceSlices in step with what drivers stream, so that drivers need no access to the API server. */
export class DeviceSync implements Runnable {
  readonly name = "devices";
  /** Takes drivers' registrations. */
  readonly handler: PluginHandler;
  readonly #options: DeviceSyncOptions;
  readonly #metrics: DeviceMetrics;
  readonly #drivers: Drivers;
  readonly #sessions: Sessions;
  readonly #queue: SliceQueue;
  readonly #knownCallbacks = new Set<() => void>();

  constructor(options: DeviceSyncOptions) {
    this.#options = options;
    const { client, clock, log, nodeName, notify, queueMetrics, settings, turns, watch } = options;
    const random = options.random ? { random: options.random } : {};
    this.#metrics = createDeviceMetrics(options.registry, { drivers: () => this.#readings() });
    const metrics = this.#metrics;
    const nodeUid = new NodeUid(client, nodeName);
    this.#drivers = new Drivers({
      nodeName,
      settings,
      onRegistered: () => this.#sessions.wake(),
      onChange: (driver) => this.#queue.changed(driver),
      taints: options.taints ?? (() => undefined),
      untilReady: options.untilReady,
      needsNoPreparation: options.needsNoPreparation,
      metrics,
      turns,
      clock,
      log,
      ...random,
    });
    this.#sessions = new Sessions({
      client,
      watch,
      nodeName,
      nodeUid,
      metrics,
      hasDrivers: () => this.#drivers.list().length > 0,
      onForeign: (driver) => this.#queue.foreign(driver),
      onResync: () => this.#queue.resync(),
      clock,
      log,
      ...(options.recheckMs === undefined ? {} : { recheckMs: options.recheckMs }),
      ...random,
    });
    this.#queue = new SliceQueue({
      drivers: this.#drivers,
      session: () => this.#sessions.current,
      nodeUid,
      minWriteIntervalMs: () => settings().minWriteIntervalMs,
      notify,
      onKnown: () => {
        for (const callback of this.#knownCallbacks) callback();
      },
      metrics,
      turns,
      clock,
      log,
      ...(queueMetrics ? { queueMetrics } : {}),
      ...random,
    });
    this.handler = this.#drivers;
  }

  async run(signal: AbortSignal): Promise<void> {
    const { clock, settings } = this.#options;
    const startup = clock.after(settings().settleTimeMs, () => {
      this.#drivers.startupOver();
      this.#queue.startupOver();
    });
    try {
      await Promise.all([this.#queue.run(signal), this.#sessions.run(signal), this.#taintAbsent(signal)]);
    } finally {
      startup.cancel();
      await this.#drivers.stop();
    }
  }

  /** Every driver that is registered or was recently, sorted by name; what the CLI and the API show. */
  status(): DriverStatus[] {
    const cache = this.#sessions.current?.cache;
    return this.#drivers.list().map((driver) => {
      const { name } = driver;
      const stored = cache?.of(name) ?? [];
      const foreign = cache?.foreignOf(name) ?? [];
      return driverStatus(driver, this.#queue.desired(name), stored, foreign, this.#queue.syncOf(name));
    });
  }

  /** The devices of a driver that are to be published, by pool, with the slices that have them; empty for an unknown driver. */
  devicesOf(driver: string): PublishedDevice[] {
    const slices = slicesByDevice(this.#sessions.current?.cache.of(driver) ?? []);
    const pools = this.#queue.desired(driver)?.pools ?? [];
    return pools.flatMap(({ name: pool, devices }) =>
      devices.map(({ name, device }) => ({ pool, device, slices: slices.get(`${pool}/${name}`) ?? [] })),
    );
  }

  /**
   * A device as its driver reported it last to this agent, with attributes that the API server may not keep. Undefined
   * where the driver publishes its ResourceSlices itself, is not known any more, or has not reported such a device yet.
   */
  reportedDevice(driver: string, pool: string, device: string): Device | undefined {
    return this.#drivers.get(driver)?.device(pool, device);
  }

  /** What `taints` answers for a driver has changed. */
  taintsChanged(driver: string): void {
    this.#drivers.taintsChanged(driver);
  }

  /** Calls back when a driver's first message is read, also after it was forgotten; gives the way to stop that. */
  onDevicesKnown(callback: () => void): () => void {
    this.#knownCallbacks.add(callback);
    return () => void this.#knownCallbacks.delete(callback);
  }

  /** The version of ResourceSlices that is used; undefined while there is none. */
  get version(): string | undefined {
    return this.#sessions.current?.api.version;
  }

  healthChecks(): HealthCheck[] {
    return [
      {
        name: "DeviceStreamsReady",
        kind: "ready",
        check: () => streamHealth(this.#drivers.list(), this.#options.clock.monotonic()),
      },
      {
        name: "DeviceSlicesPublished",
        kind: "ready",
        check: () =>
          sliceHealth({
            drivers: this.#drivers.list(),
            watch: this.#sessions.watchHealth(),
            problem: this.#sessions.problem,
            problemOf: (driver) => this.#queue.syncOf(driver)?.problem,
            slices: this.#sessions.current?.cache.size ?? 0,
            now: this.#options.clock.monotonic(),
          }),
      },
    ];
  }

  // No capacity that can't be prepared: also of drivers that were disconnected while the agent was not running.
  async #taintAbsent(signal: AbortSignal): Promise<void> {
    const { clock, log, settings } = this.#options;
    const { taintDelayMs, settleTimeMs } = settings();
    const endsAt = clock.monotonic() + settleTimeMs;
    if (taintDelayMs >= settleTimeMs) return;
    await clock.sleep(taintDelayMs, signal).catch(() => {});
    while (!signal.aborted && clock.monotonic() < endsAt) {
      try {
        if (await this.#adoptAbsent(signal)) return;
      } catch (error) {
        if (signal.aborted) return;
        log.warn(
          { err: error },
          "slices of drivers that are not registered can't be read, will be tried again",
        );
      }
      await clock.sleep(ABSENT_RETRY_MS, signal).catch(() => {});
    }
  }

  // Answers whether it is known what is published.
  async #adoptAbsent(signal: AbortSignal): Promise<boolean> {
    const { client, nodeName } = this.#options;
    const session = this.#sessions.current;
    if (!session?.cache.isSynced) return false;
    const isAbsent = (driver: string) => this.#drivers.get(driver) === undefined;
    if (![...session.cache.drivers()].some(isAbsent)) return true;
    const { api } = session;
    const fieldSelector = fieldSelectorOf(api, nodeName);
    // They are written again, with a taint.
    const { items } = await client.list(api.resource, {
      fieldSelector,
      resourceVersion: "0",
      exactIntegers: true,
      signal,
    });
    for (const [driver, pools] of publishedPools(api, items, nodeName))
      if (isAbsent(driver)) this.#drivers.adopt(driver, pools);
    return true;
  }

  #readings() {
    return this.status().map(({ name, state, quarantined, devices, slices, foreign, writeError }) => ({
      name,
      state,
      quarantined,
      devices,
      slices: slices.length,
      foreign: foreign.length,
      isFailing: writeError !== undefined,
    }));
  }
}
