import type { ApiResource, EventInput, KubeApiClient, Watcher, WatchHandler } from "../kube/index.ts";
import {
  type Clock,
  codeOf,
  type HealthCheck,
  type Logger,
  messageOf,
  NodekeeperError,
  type Registry,
  type Runnable,
  WorkQueue,
  type WorkQueueMetrics,
} from "../lib/index.ts";
import type { PluginHandler } from "../plugins/index.ts";
import type { Desired } from "./driver.ts";
import { DriverSync } from "./driver-sync.ts";
import { type DriverSettings, Drivers } from "./drivers.ts";
import type { Feature } from "./features.ts";
import { createDeviceMetrics, type DeviceMetrics } from "./metrics.ts";
import { discoverSliceApi, fieldSelectorOf, managedByLabel, type SliceApi } from "./slice-api.ts";
import { SliceCache } from "./slice-cache.ts";
import { SliceWriter, type WriteResult } from "./slice-writer.ts";
import { type DriverStatus, driverStatus } from "./status.ts";

/** Times in milliseconds. */
export interface DeviceSettings extends DriverSettings {
  /** The least time between two rounds of writes of one driver; what it says meanwhile is written together. */
  minWriteIntervalMs: number;
  /** After the start, how long drivers may take to come back before their slices are removed. */
  settleMs: number;
}

export const defaultDeviceSettings: Readonly<DeviceSettings> = {
  wipeDelayMs: 30_000,
  maxMessageBytes: 64 * 1024 * 1024,
  minWriteIntervalMs: 200,
  settleMs: 30_000,
};

export interface DeviceSyncOptions {
  client: KubeApiClient;
  watch: (
    resource: ApiResource,
    selectors: { fieldSelector: string; labelSelector: string },
    handler: WatchHandler,
  ) => Watcher;
  nodeName: string;
  settings: () => DeviceSettings;
  notify: (event: Pick<EventInput, "type" | "reason" | "message">) => void;
  clock: Clock;
  log: Logger;
  /** One sync for each registry. */
  registry: Registry;
  queueMetrics?: WorkQueueMetrics;
  /** How often it is looked whether the server is another version than before, milliseconds. Default 10 min. */
  recheckMs?: number;
  random?: () => number;
}

/** What is spoken with the API server now, until it turns out to be another one. */
interface Session {
  api: SliceApi;
  cache: SliceCache;
  writer: SliceWriter;
  /** What the server does not have, as it turned out. */
  without: Set<Feature>;
}

const WORKERS = 4;
// Whether the server is another version than before.
const RECHECK_MS = 600_000;
const REDISCOVER_MS = 10_000;
const PATIENCE_MS = 60_000;
const hopeless = new Set(["forbidden", "unauthenticated", "unsupported"]);

/** Keeps the node's ResourceSlices in step with what drivers stream, so that drivers need no access to the API server. */
export class DeviceSync implements Runnable {
  readonly name = "devices";
  /** Takes drivers' registrations. */
  readonly handler: PluginHandler;
  readonly #options: DeviceSyncOptions;
  readonly #drivers: Drivers;
  readonly #queue: WorkQueue;
  readonly #metrics: DeviceMetrics;
  readonly #syncs = new Map<string, DriverSync>();
  #session: Session | undefined;
  #nodeUid: string | undefined;
  #isSettled = false;
  #problem: { message: string; code: string; since: number } | undefined;
  #watcher: Watcher | undefined;

  constructor(options: DeviceSyncOptions) {
    this.#options = options;
    const { clock, log, nodeName, registry, queueMetrics, random } = options;
    this.#metrics = createDeviceMetrics(registry, { drivers: () => this.#readings() });
    this.#drivers = new Drivers({
      nodeName,
      settings: options.settings,
      onChange: (driver) => this.#changed(driver),
      metrics: () => this.#metrics,
      clock,
      log,
      ...(random ? { random } : {}),
    });
    this.handler = this.#drivers;
    this.#queue = new WorkQueue({
      name: "devices",
      clock,
      log,
      ...(queueMetrics ? { metrics: queueMetrics } : {}),
    });
  }

  async run(signal: AbortSignal): Promise<void> {
    const { clock, settings } = this.#options;
    // Slices of drivers that did not come back are looked at then.
    const settled = clock.after(settings().settleMs, () => {
      this.#isSettled = true;
      this.#touchAll();
    });
    try {
      await Promise.all([
        this.#queue.run(signal, WORKERS, (driver, scope) => this.#sync(driver, scope)),
        this.#speak(signal),
      ]);
    } finally {
      settled.cancel();
      await this.#drivers.stop();
    }
  }

  /** Every driver that is or was there lately, sorted by name; what the CLI and the API show. */
  status(): DriverStatus[] {
    return this.#drivers.list().map((driver) => {
      const sync = this.#syncs.get(driver.name);
      const slices = this.#session?.cache.of(driver.name).map(({ object }) => object) ?? [];
      return driverStatus(driver, this.#desired(driver.name), slices, {
        error: sync?.error,
        refused: sync?.refused ?? new Map(),
        dropped: sync?.dropped ?? [],
      });
    });
  }

  /** The version of ResourceSlices that is spoken; undefined while there is none. */
  get version(): string | undefined {
    return this.#session?.api.version;
  }

  healthChecks(): HealthCheck[] {
    return [
      { name: "DeviceStreamsReady", kind: "ready", check: () => this.#streamHealth() },
      { name: "DeviceSlicesPublished", kind: "ready", check: () => this.#sliceHealth() },
    ];
  }

  // One version of the API after another, as the server has them.
  async #speak(signal: AbortSignal): Promise<void> {
    const { client, clock, log } = this.#options;
    while (!signal.aborted) {
      try {
        const api = await discoverSliceApi(client, signal);
        this.#problem = undefined;
        log.info({ version: api.version }, "ResourceSlices are kept");
        await this.#speakOf(api, signal);
      } catch (error) {
        if (signal.aborted) return;
        // A cluster without the API, and a node without drivers, is no trouble.
        if (this.#drivers.list().length > 0) this.#wentWrong(error);
        await clock.sleep(REDISCOVER_MS, signal).catch(() => {});
      }
      client.forgetDiscovery();
    }
  }

  // Resolves when the server has another version, or other features, than before.
  async #speakOf(api: SliceApi, signal: AbortSignal): Promise<void> {
    const { client, clock, nodeName, recheckMs = RECHECK_MS } = this.#options;
    const server = (await client.serverVersion({ signal })).gitVersion;
    const cache = new SliceCache({
      api,
      onForeign: (driver) => this.#foreign(driver),
      onSynced: () => this.#touchAll(),
    });
    const without = new Set<Feature>();
    const writer = new SliceWriter({
      client,
      api,
      cache,
      nodeName,
      nodeUid: (scope) => this.#readNodeUid(scope),
      metrics: this.#metrics,
    });
    const ending = new AbortController();
    const scope = AbortSignal.any([signal, ending.signal]);
    const [[key, value]] = Object.entries(managedByLabel) as [[string, string]];
    this.#watcher = this.#options.watch(
      api.resource,
      { fieldSelector: fieldSelectorOf(api, nodeName), labelSelector: `${key}=${value}` },
      cache,
    );
    this.#session = { api, cache, writer, without };
    const watching = this.#watcher.run(scope);
    try {
      while (!signal.aborted) {
        await clock.sleep(
          this.#watcher.healthCheck().check().ok ? recheckMs : Math.min(recheckMs, REDISCOVER_MS),
          signal,
        );
        client.forgetDiscovery();
        const now = await discoverSliceApi(client, signal);
        const version = (await client.serverVersion({ signal })).gitVersion;
        if (now.version !== api.version || version !== server) return;
      }
    } finally {
      this.#session = undefined;
      ending.abort();
      await watching.catch(() => {});
      this.#watcher = undefined;
    }
  }

  async #sync(driver: string, signal: AbortSignal): Promise<void> {
    const session = this.#session;
    // Whoever makes a session asks for every driver again.
    if (!session?.cache.isSynced) return;
    const sync = this.#syncOf(driver);
    const { clock, settings, log } = this.#options;
    const rest = sync.rest(clock.monotonic(), settings().minWriteIntervalMs);
    if (rest > 0) {
      this.#queue.addAfter(driver, rest);
      return;
    }
    const desired = this.#desired(driver);
    if (!desired) return;
    try {
      const result = await session.writer.write(driver, desired, signal);
      this.#problem = undefined;
      this.#wrote(session, driver, desired, result);
    } catch (error) {
      if (signal.aborted) return;
      this.#wentWrong(error);
      const asked = error instanceof NodekeeperError ? (error.retryAfterMs ?? 0) : 0;
      const delayMs = sync.failed(error, clock.monotonic(), asked);
      log.warn(
        { driver, err: error, retryInMs: Math.round(delayMs) },
        "slices can't be written, will be tried again",
      );
      this.#queue.addAfter(driver, delayMs);
    }
  }

  #wrote(session: Session, driver: string, desired: Desired, result: WriteResult): void {
    const { clock, log, notify } = this.#options;
    const sync = this.#syncOf(driver);
    sync.wrote(result, clock.monotonic());
    for (const message of sync.news(driver, desired)) {
      log.warn({ driver, message }, "not all devices of a driver are published");
      notify({ type: "Warning", reason: "DevicesHeldBack", message });
    }
    const learnt = [...result.missing].filter((feature) => !session.without.has(feature));
    if (learnt.length > 0) {
      for (const feature of learnt) session.without.add(feature);
      log.warn(
        { driver, features: learnt },
        "API server does not keep parts of devices: features that it has off",
      );
      this.#touchAll();
      return;
    }
    if (result.failures.size === 0) {
      sync.settled(desired);
      const known = this.#drivers.get(driver);
      if (!known || known.isWiped) this.#forget(driver);
      return;
    }
    const delayMs = sync.failedPartly();
    const [err] = result.failures.values();
    log.warn(
      { driver, slices: [...sync.refused.keys()], err, retryInMs: Math.round(delayMs) },
      "some slices can't be written, will be tried again; the others are",
    );
    this.#queue.addAfter(driver, delayMs);
  }

  // Undefined: not known (yet), so that nothing is touched.
  #desired(name: string): Desired | undefined {
    const session = this.#session;
    if (!session) return undefined;
    const driver = this.#drivers.get(name);
    if (driver) return driver.desired(session.api.version === "v1alpha2", session.without);
    if (!this.#isSettled) return undefined;
    return { pools: [], models: [], problems: [], quarantined: 0 };
  }

  #changed(driver: string): void {
    const { clock, settings } = this.#options;
    this.#queue.addAfter(driver, this.#syncOf(driver).rest(clock.monotonic(), settings().minWriteIntervalMs));
  }

  #foreign(driver: string): void {
    // Whoever removes a slice may have been the garbage collector, after the Node was made anew.
    this.#nodeUid = undefined;
    const sync = this.#syncOf(driver);
    if (!sync.isRepair(this.#desired(driver))) {
      this.#queue.add(driver);
      return;
    }
    this.#metrics.repairs.inc();
    this.#queue.addAfter(driver, sync.repairDelay(this.#options.clock.monotonic()));
  }

  #touchAll(): void {
    const known = this.#session?.cache.drivers() ?? new Set<string>();
    for (const driver of new Set([...known, ...this.#drivers.list().map(({ name }) => name)]))
      this.#queue.add(driver);
  }

  #syncOf(driver: string): DriverSync {
    let sync = this.#syncs.get(driver);
    if (!sync) {
      sync = new DriverSync(this.#options.random);
      this.#syncs.set(driver, sync);
    }
    return sync;
  }

  #forget(driver: string): void {
    this.#drivers.wiped(driver);
    this.#syncs.delete(driver);
  }

  async #readNodeUid(signal: AbortSignal): Promise<string> {
    if (this.#nodeUid) return this.#nodeUid;
    const { client, nodeName } = this.#options;
    const resource = await client.resolve({ group: "", version: "v1", kind: "Node" }, { signal });
    if (!resource) throw new NodekeeperError("unsupported", "the API server serves no Nodes");
    let uid: string | undefined;
    try {
      uid = (await client.get(resource, nodeName, { signal })).metadata.uid;
    } catch (error) {
      if (codeOf(error) !== "notFound") throw error;
    }
    // Without an owner a slice would outlive its Node.
    if (!uid) throw new NodekeeperError("unavailable", `Node ${nodeName} does not exist (yet)`);
    this.#nodeUid = uid;
    return uid;
  }

  #wentWrong(error: unknown): void {
    const code = codeOf(error);
    const since = this.#problem?.since ?? this.#options.clock.monotonic();
    this.#problem = { message: messageOf(error), code, since };
  }

  #streamHealth(): { ok: boolean; message: string } {
    const drivers = this.#drivers.list();
    const failing = drivers.filter(({ state }) => state === "failing");
    const now = this.#options.clock.now();
    const names = failing.map(
      ({ name, error, since }) => `${name} for ${Math.round((now - since) / 1000)} s: ${error}`,
    );
    const message = names.length > 0 ? `failing: ${names.join("; ")}` : `${drivers.length} drivers`;
    const watched = drivers.filter(({ state }) => state !== "none");
    // One driver's trouble is its own; when none can be heard the agent is suspect.
    const isAll = failing.length > 0 && failing.length === watched.length;
    return { ok: !isAll || failing.some(({ since }) => now - since < PATIENCE_MS), message };
  }

  #sliceHealth(): { ok: boolean; message: string } {
    const watch = this.#watcher?.healthCheck().check();
    if (watch && !watch.ok && this.#drivers.list().length > 0)
      return { ok: false, message: `slices not watched: ${watch.message}` };
    const problem = this.#problem;
    if (!problem) return { ok: true, message: `${this.#session?.cache.size ?? 0} slices` };
    const waited = this.#options.clock.monotonic() - problem.since;
    const isBad = hopeless.has(problem.code) || waited > PATIENCE_MS;
    return {
      ok: !isBad,
      message: `slices not written for ${Math.round(waited / 1000)} s: ${problem.message}`,
    };
  }

  #readings() {
    return this.status().map(({ name, state, quarantined, devices, slices }) => ({
      name,
      state,
      quarantined,
      devices,
      slices: slices.length,
    }));
  }
}
