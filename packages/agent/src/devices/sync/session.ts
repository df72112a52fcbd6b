import type { ApiResource, KubeApiClient, Watcher, WatchHandler } from "@nodekeeper/core/kube";
import {
  Backoff,
  type Clock,
  codeOf,
  type HealthCheck,
  type Logger,
  retryPolicies,
  WakeableSleep,
} from "@nodekeeper/core/lib";
import { type WriteProblem, writeProblem } from "./driver-sync.ts";
import type { DeviceMetrics } from "./metrics.ts";
import type { NodeUid } from "./node-uid.ts";
import { ServerFeatures } from "./server-features.ts";
import { discoverSliceApi, fieldSelectorOf, type SliceApi } from "./slice-api.ts";
import { SliceCache } from "./slice-cache.ts";
import { SliceRequests } from "./slice-requests.ts";
import { SliceWriter } from "./slice-writer.ts";

/** What is in use with one version of the API server. */
export interface Session {
  api: SliceApi;
  cache: SliceCache;
  requests: SliceRequests;
  writer: SliceWriter;
  features: ServerFeatures;
}

export interface SessionsOptions {
  client: KubeApiClient;
  watch: (resource: ApiResource, selectors: { fieldSelector: string }, handler: WatchHandler) => Watcher;
  nodeName: string;
  nodeUid: NodeUid;
  metrics: DeviceMetrics;
  /** Whether any driver is known: without one, a cluster without the API is no problem. */
  hasDrivers: () => boolean;
  /** Another client changed a slice of this driver. */
  onForeign: (driver: string) => void;
  /** The slices of every driver are to be compared with what is desired. */
  onResync: () => void;
  clock: Clock;
  log: Logger;
  /** Milliseconds between full comparisons with the API server. Default 10 min. */
  recheckMs?: number;
  random?: () => number;
}

const RECHECK_MS = 600_000;
const REDISCOVER_MS = 10_000;

/**
 * One session with the API server after another: a session ends when the server turns out to have another version, or
 * serves another version of ResourceSlices. There is none while the node has neither drivers nor slices: most nodes of a
 * cluster have no devices, and cost the API server no watch.
 */
export class Sessions {
  readonly #options: SessionsOptions;
  readonly #failures: Backoff;
  readonly #registered = new WakeableSleep();
  // An earlier agent process may have left slices.
  #mayHaveSlices = true;
  // By the server's version.
  readonly #features = new Map<string, ServerFeatures>();
  #current: Session | undefined;
  #watcher: Watcher | undefined;
  #problem: WriteProblem | undefined;

  constructor(options: SessionsOptions) {
    this.#options = options;
    const { random = Math.random } = options;
    this.#failures = new Backoff({ ...retryPolicies.sliceDiscovery, random });
  }

  get current(): Session | undefined {
    return this.#current;
  }

  /** Why there is no session. */
  get problem(): WriteProblem | undefined {
    return this.#problem;
  }

  /** The health of the watch; undefined without a session. */
  watchHealth(): ReturnType<HealthCheck["check"]> | undefined {
    return this.#watcher?.healthCheck().check();
  }

  /** A driver has registered. */
  wake(): void {
    this.#registered.wake();
  }

  async run(signal: AbortSignal): Promise<void> {
    const { client, clock, hasDrivers, log } = this.#options;
    while (!signal.aborted) {
      try {
        await this.#untilNeeded(signal);
        const api = await discoverSliceApi(client, signal);
        const server = (await client.serverVersion({ signal })).gitVersion;
        this.#problem = undefined;
        this.#failures.reset();
        log.info({ version: api.version, server }, "ResourceSlices are kept");
        await this.#open(api, server, signal);
      } catch (error) {
        if (signal.aborted) return;
        if (hasDrivers()) {
          this.#problem = writeProblem(error, this.#problem?.since ?? clock.monotonic());
        }
        // A server that has no ResourceSlices has none of this node.
        if (codeOf(error) === "unsupported") this.#mayHaveSlices = false;
        await clock.sleep(this.#failures.next(), signal).catch(() => {});
      }
      client.forgetDiscovery();
    }
  }

  async #untilNeeded(signal: AbortSignal): Promise<void> {
    const { clock, hasDrivers } = this.#options;
    for (;;) {
      this.#registered.clear();
      if (this.#mayHaveSlices || hasDrivers()) return;
      await this.#registered.wait(clock, Number.POSITIVE_INFINITY, signal);
    }
  }

  // Resolves when the server has another version than before, or the session is not needed.
  async #open(api: SliceApi, server: string, signal: AbortSignal): Promise<void> {
    const { client, metrics, nodeName, nodeUid, onForeign, onResync } = this.#options;
    const features = this.#features.get(server) ?? new ServerFeatures();
    this.#features.set(server, features);
    const cache = new SliceCache({
      api,
      nodeName,
      onForeign,
      onSynced: onResync,
      onReopened: () => {
        features.doubt();
        onResync();
      },
    });
    const requests = new SliceRequests({
      client,
      api,
      cache,
      nodeName,
      nodeUid: (scope) => nodeUid.read(scope),
      metrics,
    });
    const session: Session = { api, cache, requests, writer: new SliceWriter(requests, cache), features };
    const ending = new AbortController();
    const watcher = this.#options.watch(
      api.resource,
      { fieldSelector: fieldSelectorOf(api, nodeName) },
      cache,
    );
    this.#watcher = watcher;
    this.#current = session;
    const watching = watcher.run(AbortSignal.any([signal, ending.signal]));
    try {
      await this.#recheck(session, server, () => watcher.healthCheck().check().ok, signal);
    } finally {
      this.#current = undefined;
      ending.abort();
      await watching.catch(() => {});
      this.#watcher = undefined;
    }
  }

  // Compares with the server in full now and then; resolves when it has another version than before, or is not needed.
  async #recheck(
    { api, cache, features }: Session,
    server: string,
    isWatching: () => boolean,
    signal: AbortSignal,
  ): Promise<void> {
    const { client, clock, hasDrivers, log, nodeName, onResync } = this.#options;
    let comparedAt = clock.monotonic();
    let periodMs = this.#period();
    while (!signal.aborted) {
      const restMs = comparedAt + periodMs - clock.monotonic();
      await clock.sleep(isWatching() ? restMs : Math.min(restMs, REDISCOVER_MS), signal);
      const isDue = clock.monotonic() >= comparedAt + periodMs;
      if (isDue) {
        comparedAt = clock.monotonic();
        periodMs = this.#period();
      } else if (isWatching()) continue;
      if (isDue && cache.isSynced && cache.size === 0 && !hasDrivers()) {
        this.#mayHaveSlices = false;
        return;
      }
      try {
        client.forgetDiscovery();
        const now = await discoverSliceApi(client, signal);
        const version = (await client.serverVersion({ signal })).gitVersion;
        if (now.version !== api.version || version !== server) return;
        // While the watch is down it lists by itself when it can: a list of each node every ten seconds would keep
        // an overloaded server down.
        if (!isDue || !cache.isSynced) continue;
        const fieldSelector = fieldSelectorOf(api, nodeName);
        // The cache's list will do: what it lacks of the last seconds, the watch reports.
        const { items, resourceVersion } = await client.list(api.resource, {
          fieldSelector,
          resourceVersion: "0",
          signal,
        });
        cache.onReplace(items, resourceVersion);
        features.doubt();
        onResync();
      } catch (error) {
        if (signal.aborted) return;
        // What is known of the server holds until it answers otherwise.
        log.warn(
          { err: error },
          "ResourceSlices can't be compared with the API server's, will be tried again",
        );
      }
    }
  }

  // Not all nodes at one time.
  #period(): number {
    const { recheckMs = RECHECK_MS, random = Math.random } = this.#options;
    return recheckMs * (0.9 + 0.2 * random());
  }
}
