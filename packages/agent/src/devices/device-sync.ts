import type { ApiResource, EventInput, KubeApiClient, Watcher, WatchHandler } from "@nodekeeper/core/kube";
import {
  type Clock,
  codeOf,
  type HealthCheck,
  type Logger,
  type LoopTurns,
  messageOf,
  NodekeeperError,
  type Registry,
  type Runnable,
  WorkQueue,
  type WorkQueueMetrics,
} from "@nodekeeper/core/lib";
import type { PluginHandler } from "../plugins/index.ts";
import type { AddedTaints } from "./added-taints.ts";
import { type Desired, type Driver, nothingDesired } from "./driver.ts";
import { DriverSync, type WriteProblem } from "./driver-sync.ts";
import { type DriverSettings, Drivers } from "./drivers.ts";
import type { Feature } from "./feature-bits.ts";
import { createDeviceMetrics, type DeviceMetrics } from "./metrics.ts";
import type { Device } from "./model.ts";
import { learnFeatures, ServerFeatures } from "./server-features.ts";
import { discoverSliceApi, fieldSelectorOf, type SliceApi } from "./slice-api.ts";
import { SliceCache } from "./slice-cache.ts";
import { SliceRequests } from "./slice-requests.ts";
import { SliceWriter } from "./slice-writer.ts";
import { type DriverStatus, driverStatus } from "./status.ts";
import type { WriteResult } from "./write-result.ts";

/** Times in milliseconds. */
export interface DeviceSettings extends DriverSettings {
  /** The least time between two rounds of writes of one driver; what it reports meanwhile is written together. */
  minWriteIntervalMs: number;
  /** After the start, how long drivers may take to register again before their slices are deleted. */
  settleMs: number;
}

export interface DeviceSyncOptions {
  client: KubeApiClient;
  watch: (resource: ApiResource, selectors: { fieldSelector: string }, handler: WatchHandler) => Watcher;
  nodeName: string;
  settings: () => DeviceSettings;
  notify: (event: Pick<EventInput, "type" | "reason" | "message">) => void;
  /** Taints that devices get beside those that their driver reports; another object after each change. */
  taints?: (driver: string) => Pick<AddedTaints, "byDevice"> | undefined;
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

/** What is done with the API server now, until it turns out to be another one. */
interface Session {
  api: SliceApi;
  cache: SliceCache;
  requests: SliceRequests;
  writer: SliceWriter;
  features: ServerFeatures;
}

const WORKERS = 4;
const RECHECK_MS = 600_000;
const REDISCOVER_MS = 10_000;
const TIMEOUT_MS = 60_000;
const nonRetryable = new Set(["forbidden", "unauthenticated", "unsupported"]);

/** Keeps the node's ResourceSlices in step with what drivers stream, so that drivers need no access to the API server. */
export class DeviceSync implements Runnable {
  readonly name = "devices";
  /** Takes drivers' registrations. */
  readonly handler: PluginHandler;
  readonly #options: DeviceSyncOptions;
  readonly #drivers: Drivers;
  readonly #queue: WorkQueue;
  readonly #turns: LoopTurns;
  readonly #metrics: DeviceMetrics;
  readonly #syncs = new Map<string, DriverSync>();
  // By the server's version.
  readonly #features = new Map<string, ServerFeatures>();
  readonly #knownCallbacks = new Set<() => void>();
  #session: Session | undefined;
  #nodeUid: Promise<string> | undefined;
  #isSettled = false;
  /** Why there is no session. */
  #problem: WriteProblem | undefined;
  #watcher: Watcher | undefined;

  constructor(options: DeviceSyncOptions) {
    this.#options = options;
    const { clock, log, nodeName, registry, queueMetrics, random, turns } = options;
    this.#turns = turns;
    this.#metrics = createDeviceMetrics(registry, { drivers: () => this.#readings() });
    this.#drivers = new Drivers({
      nodeName,
      settings: options.settings,
      onChange: (driver) => this.#changed(driver),
      taints: options.taints ?? (() => undefined),
      metrics: () => this.#metrics,
      turns: this.#turns,
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
    // Slices of drivers that did not register again are deleted then.
    const settled = clock.after(settings().settleMs, () => {
      this.#isSettled = true;
      this.#touchAll();
    });
    try {
      await Promise.all([
        this.#queue.run(signal, WORKERS, (driver, scope) => this.#sync(driver, scope)),
        this.#converse(signal),
      ]);
    } finally {
      settled.cancel();
      await this.#drivers.stop();
    }
  }

  /** Every driver that is registered or was recently, sorted by name; what the CLI and the API show. */
  status(): DriverStatus[] {
    const cache = this.#session?.cache;
    return this.#drivers.list().map((driver) => {
      const { name } = driver;
      const stored = cache?.of(name) ?? [];
      return driverStatus(
        driver,
        this.#desired(name),
        stored,
        cache?.foreignOf(name) ?? [],
        this.#syncs.get(name),
      );
    });
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
    return this.#session?.api.version;
  }

  healthChecks(): HealthCheck[] {
    return [
      { name: "DeviceStreamsReady", kind: "ready", check: () => this.#streamHealth() },
      { name: "DeviceSlicesPublished", kind: "ready", check: () => this.#sliceHealth() },
    ];
  }

  // One version of the API after another, as the server has them.
  async #converse(signal: AbortSignal): Promise<void> {
    const { client, clock, log } = this.#options;
    while (!signal.aborted) {
      try {
        const api = await discoverSliceApi(client, signal);
        const server = (await client.serverVersion({ signal })).gitVersion;
        this.#problem = undefined;
        log.info({ version: api.version, server }, "ResourceSlices are kept");
        await this.#converseWith(api, server, signal);
      } catch (error) {
        if (signal.aborted) return;
        // A cluster without the API, and a node without drivers, is no trouble.
        if (this.#drivers.list().length > 0) {
          const since = this.#problem?.since ?? clock.monotonic();
          this.#problem = { message: messageOf(error), code: codeOf(error), since };
        }
        await clock.sleep(REDISCOVER_MS, signal).catch(() => {});
      }
      client.forgetDiscovery();
    }
  }

  // Resolves when the server has another version than before.
  async #converseWith(api: SliceApi, server: string, signal: AbortSignal): Promise<void> {
    const { client, clock, log, nodeName, recheckMs = RECHECK_MS, random = Math.random } = this.#options;
    const features = this.#features.get(server) ?? new ServerFeatures();
    this.#features.set(server, features);
    const cache = new SliceCache({
      api,
      nodeName,
      onForeign: (driver) => this.#foreign(driver),
      onSynced: () => this.#touchAll(),
      onReopened: () => {
        features.doubt();
        this.#touchAll();
      },
    });
    const requests = new SliceRequests({
      client,
      api,
      cache,
      nodeName,
      nodeUid: (scope) => this.#readNodeUid(scope),
      metrics: this.#metrics,
    });
    const ending = new AbortController();
    const scope = AbortSignal.any([signal, ending.signal]);
    const fieldSelector = fieldSelectorOf(api, nodeName);
    this.#watcher = this.#options.watch(api.resource, { fieldSelector }, cache);
    this.#session = { api, cache, requests, writer: new SliceWriter(requests, cache), features };
    const watcher = this.#watcher;
    const watching = watcher.run(scope);
    const isWatching = () => watcher.healthCheck().check().ok;
    try {
      let comparedAt = clock.monotonic();
      // Not all nodes at one time.
      let periodMs = recheckMs * (0.9 + 0.2 * random());
      while (!signal.aborted) {
        const restMs = comparedAt + periodMs - clock.monotonic();
        await clock.sleep(isWatching() ? restMs : Math.min(restMs, REDISCOVER_MS), signal);
        const isDue = clock.monotonic() >= comparedAt + periodMs;
        if (isDue) {
          comparedAt = clock.monotonic();
          periodMs = recheckMs * (0.9 + 0.2 * random());
        } else if (isWatching()) continue;
        try {
          client.forgetDiscovery();
          const now = await discoverSliceApi(client, signal);
          const version = (await client.serverVersion({ signal })).gitVersion;
          if (now.version !== api.version || version !== server) return;
          // While the watch is down it lists by itself when it can: a list of each node every ten seconds would keep
          // an overloaded server down.
          if (!isDue || !cache.isSynced) continue;
          const { items, resourceVersion } = await client.list(api.resource, { fieldSelector, signal });
          cache.onReplace(items, resourceVersion);
          features.doubt();
          this.#touchAll();
        } catch (error) {
          if (signal.aborted) return;
          // What is known of the server holds until it says otherwise.
          log.warn(
            { err: error },
            "ResourceSlices can't be compared with the API server's, will be tried again",
          );
        }
      }
    } finally {
      this.#session = undefined;
      ending.abort();
      await watching.catch(() => {});
      this.#watcher = undefined;
    }
  }

  async #sync(name: string, signal: AbortSignal): Promise<void> {
    const session = this.#session;
    // The next session asks for every driver again.
    if (!session?.cache.isSynced) return;
    const sync = this.#syncOf(name);
    const { clock, settings, log } = this.#options;
    const rest = sync.rest(clock.monotonic(), settings().minWriteIntervalMs);
    if (rest > 0) {
      this.#queue.addAfter(name, rest);
      return;
    }
    try {
      const driver = this.#drivers.get(name);
      // For the slices to be created, while the message is read; where it fails, creating them will say so.
      if (driver?.messageAt !== undefined && session.cache.of(name).length === 0)
        this.#readNodeUid(signal).catch(() => {});
      const wasKnown = driver?.reported() !== undefined;
      await driver?.read(this.#turns);
      if (!wasKnown && driver?.reported()) for (const callback of this.#knownCallbacks) callback();
      await this.#learn(session, name, signal);
      const desired = this.#desired(name);
      if (!desired) return;
      if (sync.retryDelay(clock.monotonic()) === 0) sync.retry();
      const result = await session.writer.write(name, desired, sync, signal);
      this.#wrote(session, name, desired, result);
    } catch (error) {
      if (signal.aborted) return;
      const asked = error instanceof NodekeeperError ? (error.retryAfterMs ?? 0) : 0;
      const delayMs = sync.failed(error, clock.monotonic(), asked);
      log.warn(
        { driver: name, err: error, retryInMs: Math.round(delayMs) },
        "slices can't be written, will be tried again",
      );
      this.#queue.addAfter(name, delayMs);
    }
  }

  // What the server drops is learnt before the first write.
  async #learn({ requests, features }: Session, name: string, signal: AbortSignal): Promise<void> {
    const driver = this.#drivers.get(name);
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
    if (missing.length > 0) this.#options.log.warn({ driver: name, features: missing }, featuresOff);
    this.#touchAll(name);
  }

  #wrote(session: Session, name: string, desired: Desired, result: WriteResult): void {
    const { clock, log, notify } = this.#options;
    const sync = this.#syncOf(name);
    const now = clock.monotonic();
    sync.wrote(result, now);
    if (result.outdated.length > 0) {
      const message = `Driver ${name}: slices of another client were in its pools and are deleted: ${result.outdated.slice(0, 3).join(", ")}`;
      log.warn(
        { driver: name, slices: result.outdated },
        "slices of another client were in a driver's pools",
      );
      notify({ type: "Warning", reason: "ForeignSlicesDeleted", message });
    }
    for (const message of sync.news(name, desired, now)) {
      log.warn({ driver: name, message }, "not all devices of a driver are published");
      notify({ type: "Warning", reason: "DevicesQuarantined", message });
    }
    const learnt = [...result.missing].filter((feature) => session.features.learnt(feature, false));
    if (learnt.length > 0) {
      log.warn({ driver: name, features: learnt }, featuresOff);
      this.#touchAll();
      return;
    }
    if (result.failures.size === 0) {
      sync.settled(desired);
      this.#retryRefused(name, sync);
      const known = this.#drivers.get(name);
      if ((!known || known.isWithdrawn) && this.#drivers.withdrawn(name)) this.#syncs.delete(name);
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

  // Other work on the driver's key may come before, and is no reason to try earlier.
  #retryRefused(name: string, sync: DriverSync): void {
    const delayMs = sync.retryDelay(this.#options.clock.monotonic());
    if (delayMs !== undefined) this.#queue.addAfter(name, delayMs);
  }

  // Undefined: not known (yet), so that nothing is touched.
  #desired(name: string): Desired | undefined {
    const session = this.#session;
    if (!session) return undefined;
    const driver = this.#drivers.get(name);
    if (!driver) return this.#isSettled ? nothingDesired : undefined;
    const { api, features } = session;
    const isOld = api.version === "v1alpha2";
    const without = new Set([...features.missing, ...(this.#syncs.get(name)?.without ?? [])]);
    const unknown = isOld ? new Set<Feature>() : features.unknownOf(driver.features());
    return driver.desired({ isOld, without, unknown });
  }

  #changed(driver: string): void {
    const { clock, settings } = this.#options;
    this.#queue.addAfter(driver, this.#syncOf(driver).rest(clock.monotonic(), settings().minWriteIntervalMs));
  }

  #foreign(driver: string): void {
    // A slice may have been deleted by the garbage collector, after the Node was created again.
    this.#nodeUid = undefined;
    const sync = this.#syncOf(driver);
    if (!sync.isRepair(this.#desired(driver))) {
      this.#queue.add(driver);
      return;
    }
    this.#metrics.repairs.inc();
    this.#queue.addAfter(driver, sync.repairDelay());
  }

  #touchAll(except?: string): void {
    const known = this.#session?.cache.drivers() ?? new Set<string>();
    for (const driver of new Set([...known, ...this.#drivers.list().map(({ name }) => name)]))
      if (driver !== except) this.#queue.add(driver);
  }

  #syncOf(driver: string): DriverSync {
    let sync = this.#syncs.get(driver);
    if (!sync) {
      sync = new DriverSync(this.#options.clock, this.#options.random);
      this.#syncs.set(driver, sync);
    }
    return sync;
  }

  // One request, however many slices are created at once.
  #readNodeUid(signal: AbortSignal): Promise<string> {
    if (this.#nodeUid) return this.#nodeUid;
    const reading = this.#askNodeUid(signal);
    this.#nodeUid = reading;
    reading.catch(() => {
      if (this.#nodeUid === reading) this.#nodeUid = undefined;
    });
    return reading;
  }

  async #askNodeUid(signal: AbortSignal): Promise<string> {
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
    return uid;
  }

  #streamHealth(): { ok: boolean; message: string } {
    const drivers = this.#drivers.list().filter(({ state }) => state !== "none");
    const now = this.#options.clock.monotonic();
    const age = ({ enteredAt }: Driver) => now - enteredAt;
    const failing = drivers.filter(
      (driver) => driver.state === "failing" || (driver.state === "waiting" && age(driver) >= TIMEOUT_MS),
    );
    const names = failing.map((driver) => {
      const why = driver.state === "waiting" ? "the driver sent no devices" : driver.error;
      return `${driver.name} for ${Math.round(age(driver) / 1000)} s: ${why}`;
    });
    const message = names.length > 0 ? `failing: ${names.join("; ")}` : `${drivers.length} drivers`;
    // One driver's trouble is its own; when none can be heard the agent is suspect.
    const isAll = failing.length > 0 && failing.length === drivers.length;
    return { ok: !isAll || failing.some((driver) => age(driver) < TIMEOUT_MS), message };
  }

  #sliceHealth(): { ok: boolean; message: string } {
    const watch = this.#watcher?.healthCheck().check();
    if (watch && !watch.ok && this.#drivers.list().length > 0)
      return { ok: false, message: `slices not watched: ${watch.message}` };
    const now = this.#options.clock.monotonic();
    const isBad = ({ code, since }: WriteProblem) => nonRetryable.has(code) || now - since >= TIMEOUT_MS;
    const text = ({ message, since }: WriteProblem) => `${Math.round((now - since) / 1000)} s: ${message}`;
    if (this.#problem) {
      return { ok: !isBad(this.#problem), message: `slices not written for ${text(this.#problem)}` };
    }
    // What concerns one driver alone is shown with it; when nothing at all can be written the agent is suspect.
    const publishing = this.#drivers.list().filter((driver) => driver.messageAt !== undefined);
    const problems = publishing.flatMap(({ name }) => {
      const problem = this.#syncs.get(name)?.problem;
      return problem ? [{ name, problem }] : [];
    });
    const names = problems.map(({ name, problem }) => `${name} for ${text(problem)}`);
    const isAll = problems.length > 0 && problems.length === publishing.length;
    return {
      ok: !isAll || !problems.every(({ problem }) => isBad(problem)),
      message:
        names.length > 0
          ? `slices not written: ${names.join("; ")}`
          : `${this.#session?.cache.size ?? 0} slices`,
    };
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

const featuresOff = "API server does not keep parts of devices: features that it has off";
