import type { Watcher } from "@nodekeeper/core/kube";
import {
  Backoff,
  codeOf,
  type HealthCheck,
  parseWithBigInts,
  retryAfterOf,
  retryPolicies,
  sleepOrAbort,
} from "@nodekeeper/core/lib";
import { EVERY_DRIVER, type SyncContext } from "./context.ts";
import { type WriteProblem, writeProblem } from "./driver-sync.ts";
import type { Drivers } from "./drivers.ts";
import { ServerFeatures } from "./server-features.ts";
import { discoverSliceApi, fieldSelectorOf, listSlices, type SliceApi } from "./slice-api.ts";
import { SliceCache } from "./slice-cache.ts";
import { SliceRequests } from "./slice-requests.ts";
import { SliceWriter } from "./slice-writer.ts";

/** The parts that depend on the API server's version. */
export interface Session {
  api: SliceApi;
  cache: SliceCache;
  requests: SliceRequests;
  writer: SliceWriter;
  features: ServerFeatures;
}

interface Context extends SyncContext {
  /** Without drivers, a cluster that does not serve the API is not a problem. */
  drivers: Pick<Drivers, "isEmpty" | "untilAny">;
}

const RECHECK_MS = 600_000;

/**
 * Opens one session with the API server at a time. A session ends when the server's version or the served version of
 * ResourceSlices changes. There is no session while the node has neither drivers nor slices: most nodes have no devices
 * and should not cost the API server a watch.
 */
export class Sessions {
  readonly #context: Context;
  readonly #failures: Backoff;
  // An earlier process of the agent may have left slices.
  #mayHaveSlices = true;
  // By the server's version.
  readonly #features = new Map<string, ServerFeatures>();
  #current: Session | undefined;
  #watcher: Watcher | undefined;
  #problem: WriteProblem | undefined;

  constructor(context: Context) {
    this.#context = context;
    this.#failures = new Backoff(retryPolicies.sliceDiscovery);
  }

  get current(): Session | undefined {
    return this.#current;
  }

  /** Why there is no session. */
  get problem(): WriteProblem | undefined {
    return this.#problem;
  }

  /** Returns the health of the watch. Undefined without a session. */
  watchHealth(): ReturnType<HealthCheck["check"]> | undefined {
    return this.#watcher?.healthCheck().check();
  }

  async run(signal: AbortSignal): Promise<void> {
    const { client, clock, drivers, log } = this.#context;
    while (!signal.aborted) {
      try {
        if (!this.#mayHaveSlices) await drivers.untilAny(signal);
        const api = await discoverSliceApi(client, signal);
        const server = (await client.serverVersion({ signal })).gitVersion;
        this.#problem = undefined;
        this.#failures.reset();
        log.info({ version: api.version, server }, "ResourceSlices are kept");
        await this.#open(api, server, signal);
      } catch (error) {
        if (signal.aborted) return;
        if (!drivers.isEmpty) this.#problem = writeProblem(error, this.#problem?.since ?? clock.monotonic());
        // A server that does not serve ResourceSlices has none for this node.
        if (codeOf(error) === "unsupported") this.#mayHaveSlices = false;
        await sleepOrAbort(clock, this.#failures.next(retryAfterOf(error)), signal);
      }
      client.forgetDiscovery();
    }
  }

  // Resolves when the server's version has changed, or the session is no longer needed.
  async #open(api: SliceApi, server: string, signal: AbortSignal): Promise<void> {
    const { clock, scope, queue, watch } = this.#context;
    const features = this.#features.get(server) ?? new ServerFeatures();
    this.#features.set(server, features);
    const cache = new SliceCache({ api, nodeName: scope.nodeName, features, queue, clock });
    const requests = new SliceRequests({ ...this.#context, api, cache });
    const session: Session = { api, cache, requests, writer: new SliceWriter({ requests, cache }), features };
    const ending = new AbortController();
    const watcher = watch({
      resource: api.resource,
      fieldSelector: fieldSelectorOf(api, scope),
      parse: parseWithBigInts,
      handler: cache,
    });
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

  // Periodically compares all slices with the server's. Resolves when its version has changed, or the session is not
  // needed.
  async #recheck(
    { api, cache, features }: Session,
    server: string,
    isWatching: () => boolean,
    signal: AbortSignal,
  ): Promise<void> {
    const { client, clock, drivers, log, scope, queue } = this.#context;
    // While the watch is down, the server may have been replaced by one of another version.
    const failures = new Backoff(retryPolicies.apiWatch);
    let retryAfterMs = 0;
    let comparedAt = clock.monotonic();
    let periodMs = this.#period();
    while (!signal.aborted) {
      const restMs = comparedAt + periodMs - clock.monotonic();
      if (isWatching()) failures.reset();
      await clock.sleep(isWatching() ? restMs : Math.min(restMs, failures.next(retryAfterMs)), signal);
      retryAfterMs = 0;
      const isDue = clock.monotonic() >= comparedAt + periodMs;
      if (isDue) {
        comparedAt = clock.monotonic();
        periodMs = this.#period();
      } else if (isWatching()) continue;
      if (isDue && cache.isSynced && cache.size === 0 && drivers.isEmpty) {
        this.#mayHaveSlices = false;
        return;
      }
      try {
        client.forgetDiscovery();
        const now = await discoverSliceApi(client, signal);
        const version = (await client.serverVersion({ signal })).gitVersion;
        if (now.version !== api.version || version !== server) return;
        // While the watch is down, it lists again by itself. Another list per node would keep an overloaded server
        // down.
        if (!isDue || !cache.isSynced) continue;
        // A list from the server's cache suffices: the watch reports the changes of the last seconds.
        const { items, resourceVersion } = await listSlices(client, api, scope, signal);
        cache.compare(items, resourceVersion);
        features.doubt();
        queue.add(EVERY_DRIVER);
      } catch (error) {
        if (signal.aborted) return;
        // What is known about the server stays valid until it answers differently.
        retryAfterMs = retryAfterOf(error);
        log.warn({ err: error }, "failed to check the API server's version or ResourceSlices, retrying");
      }
    }
  }

  // Jitter, so that not all nodes compare at the same time.
  #period(): number {
    const { recheckMs = RECHECK_MS } = this.#context;
    return recheckMs * (0.9 + 0.2 * Math.random());
  }
}
