import {
  Backoff,
  type Clock,
  codeOf,
  errorIdOf,
  type HealthCheck,
  type HealthResult,
  type Logger,
  messageOf,
  NodekeeperError,
  type Runnable,
  retryAfterOf,
  retryPolicies,
} from "../lib/index.ts";
import { ContainedHandler } from "./contained-handler.ts";
import { ApiStatusError } from "./http-errors.ts";
import type { KubeMetrics } from "./metrics.ts";
import type { ApiResource, KubeApiClient, ListOptions, WatchEvent, WatchHandler } from "./types.ts";
import { BOOKMARK_SILENCE_MS, MalformedStreamError, StreamStatusError } from "./watch.ts";

export interface WatcherOptions {
  client: KubeApiClient;
  resource: ApiResource;
  namespace?: string;
  fieldSelector?: string;
  labelSelector?: string;
  /** As in a list's options. */
  pageSize?: number;
  handler: WatchHandler;
  clock: Clock;
  log: Logger;
  metrics: KubeMetrics;
  /**
   * The server is asked to end each watch after a random time in this range, seconds. Default 300 to 600, and 1200 to 2400
   * once it has sent a bookmark: then a connection that is dead is noticed by missing ones, and each watch that starts
   * again is a request of every node.
   */
  timeoutSeconds?: { min: number; max: number };
  /** A server that is silent for timeoutSeconds and this much longer is given up on, milliseconds. Default 30,000. */
  inactivityMarginMs?: number;
  /** The health check fails when there was no watch for longer, milliseconds. Default 60,000. */
  lostContactMs?: number;
  random?: () => number;
}

/**
 * A watch that ends sooner before its time than this counts as failed: a server that shuts down ends those of all nodes at
 * one moment, and they must not start again at one.
 */
const EARLY_MS = 5_000;
/** After so many ERROR events in a row with nothing between them the objects are listed again. */
const MOST_STATUS_ERRORS = 3;

/** How fresh a list has to be: any that the server's cache has, one not older than what was seen, or the newest. */
type Freshness = "any" | "not older" | "newest";

/**
 * Notifies a handler of the objects of one resource: lists, then watches from there, for as long as it runs.
 * After a lost connection it continues from the last version seen; after an expired version or a malformed stream it
 * lists again and calls onReplace. Every failure is retried with jittered backoff.
 */
export class Watcher implements Runnable {
  readonly name: string;
  /** Resolves after the first onReplace. Never rejects; stays pending when the watcher is stopped before. */
  readonly synced: Promise<void>;
  readonly #options: WatcherOptions;
  readonly #handler: ContainedHandler;
  readonly #backoff: Backoff;
  readonly #markSynced: () => void;
  readonly #random: () => number;
  #isSynced = false;
  // The last version seen.
  #resourceVersion: string | undefined;
  // Undefined: the next watch needs no list before it.
  #needed: Freshness | undefined = "any";
  #statusErrors = 0;
  // Expired versions in a row without an event between them.
  #expirations = 0;
  #contactAt: number | undefined;
  #lostAt: number;
  #isOpen = false;
  #sendsBookmarks = false;
  #lastError: unknown;

  constructor(options: WatcherOptions) {
    const { resource, clock, random = Math.random } = options;
    this.#options = options;
    this.#random = random;
    this.name = `watch ${resource.plural}`;
    this.#handler = new ContainedHandler(options);
    this.#backoff = new Backoff({ ...retryPolicies.apiWatch, random });
    const { promise, resolve } = Promise.withResolvers<void>();
    this.synced = promise;
    this.#markSynced = resolve;
    this.#lostAt = clock.monotonic();
  }

  /** Whether the handler has been given a whole list. */
  get isSynced(): boolean {
    return this.#isSynced;
  }

  /** Wall time of the last message from the server, milliseconds since the epoch. */
  get lastContactAt(): number | undefined {
    return this.#contactAt;
  }

  /** Why the last watch failed; undefined while one is open. */
  get lastError(): unknown {
    return this.#lastError;
  }

  async run(signal: AbortSignal): Promise<void> {
    this.#lostAt = this.#options.clock.monotonic();
    while (!signal.aborted) {
      try {
        if (this.#needed) await this.#list(this.#needed, signal);
        await this.#watch(signal);
        this.#count("ended");
      } catch (error) {
        if (signal.aborted) return;
        const delayMs = this.#failed(error);
        await this.#options.clock.sleep(delayMs, signal).catch(() => {});
      }
    }
  }

  /** Fails until the first list, and while the watch is forbidden or there has been none for longer than `lostContactMs`. */
  healthCheck(kind: HealthCheck["kind"] = "ready"): HealthCheck {
    return { name: this.name, kind, check: () => this.#check() };
  }

  async #list(needed: Freshness, signal: AbortSignal): Promise<void> {
    const { client, resource, pageSize } = this.#options;
    const { items, resourceVersion } = await client.list(resource, {
      ...this.#selection(),
      ...this.#listVersion(needed),
      ...(pageSize ? { pageSize } : {}),
      signal,
    });
    this.#needed = undefined;
    this.#heard();
    this.#handler.replace(items, resourceVersion);
    this.#resourceVersion = resourceVersion;
    this.#isSynced = true;
    this.#markSynced();
  }

  /**
   * The server answers all but the newest from its watch cache, by its index of nodes. For the newest, servers before 1.31
   * read all objects of the resource from etcd, whatever the selector: no thousands of nodes may ask that after an outage.
   */
  #listVersion(needed: Freshness): Pick<ListOptions, "resourceVersion"> {
    if (needed === "any") return { resourceVersion: "0" };
    if (needed === "newest" || this.#resourceVersion === undefined) return {};
    return { resourceVersion: this.#resourceVersion };
  }

  async #watch(signal: AbortSignal): Promise<void> {
    const { client, clock, handler, resource, inactivityMarginMs = 30_000 } = this.#options;
    // Without bookmarks a connection that died silently would be noticed by the end of the watch alone.
    const { min, max } =
      this.#options.timeoutSeconds ??
      (this.#sendsBookmarks ? { min: 1_200, max: 2_400 } : { min: 300, max: 600 });
    const timeoutSeconds = Math.round(min + this.#random() * (max - min));
    const startedAt = clock.monotonic();
    try {
      await client.watch(resource, {
        ...this.#selection(),
        signal,
        resourceVersion: this.#resourceVersion ?? "",
        timeoutSeconds,
        inactivityMs: Math.min(
          timeoutSeconds * 1000 + inactivityMarginMs,
          this.#sendsBookmarks ? BOOKMARK_SILENCE_MS : Number.POSITIVE_INFINITY,
        ),
        onOpen: () => this.#opened(),
        onEvent: (event) => this.#take(event),
        ...(handler.knownVersion && { knownVersion: (head) => this.#handler.knownVersion(head) }),
        onKnown: (version) => {
          this.#progressed();
          this.#resourceVersion = version;
        },
      });
    } finally {
      if (this.#isOpen) this.#lostAt = clock.monotonic();
      this.#isOpen = false;
      if (clock.monotonic() - startedAt >= retryPolicies.apiWatch.maxMs) {
        this.#backoff.reset();
        this.#expirations = 0;
      }
    }
    const lastedMs = clock.monotonic() - startedAt;
    if (lastedMs >= timeoutSeconds * 1000 - EARLY_MS) return;
    const after = `after ${Math.round(lastedMs / 1000)} of ${timeoutSeconds} s`;
    throw new NodekeeperError("unavailable", `${this.name}: the server ended the watch ${after}`, {
      id: "NK1204",
    });
  }

  #opened(): void {
    this.#isOpen = true;
    this.#lastError = undefined;
    this.#heard();
    this.#handler.open();
  }

  #heard(): void {
    this.#contactAt = this.#options.clock.now();
    this.#lostAt = this.#options.clock.monotonic();
  }

  #progressed(): void {
    this.#heard();
    this.#backoff.reset();
    this.#statusErrors = 0;
    this.#expirations = 0;
  }

  #take({ type, object }: WatchEvent): void {
    this.#progressed();
    if (type === "BOOKMARK") {
      this.#sendsBookmarks = true;
      this.#handler.countBookmark();
    } else if (type === "DELETED") this.#handler.delete(object);
    else this.#handler.upsert(type, object);
    if (object.metadata.resourceVersion) this.#resourceVersion = object.metadata.resourceVersion;
  }

  /** Notes the failure, decides whether to list again, and returns the delay before the next try, milliseconds. */
  #failed(error: unknown): number {
    this.#lastError = error;
    const reason = this.#reasonOf(error);
    if (isTooNew(error)) this.#needed = "newest";
    else if (reason === "expired") this.#expired();
    else if (reason === "malformed" || this.#statusErrors >= MOST_STATUS_ERRORS) {
      this.#needed ??= "not older";
      this.#statusErrors = 0;
    }
    this.#count(reason);
    const delayMs = this.#backoff.next(retryAfterOf(error));
    const fields = {
      err: error,
      resource: this.#options.resource.plural,
      reason,
      delayMs: Math.round(delayMs),
    };
    this.#options.log.warn(fields, "Watch failed, will be retried");
    return delayMs;
  }

  // The usual case after an outage. The server answers, so what it is asked next need not wait long.
  #expired(): void {
    this.#expirations++;
    this.#needed = this.#expirations === 1 ? "not older" : "newest";
    if (this.#expirations === 1) this.#backoff.reset();
  }

  #reasonOf(error: unknown): string {
    if (error instanceof MalformedStreamError) return "malformed";
    if (codeOf(error) === "expired") return "expired";
    if (error instanceof StreamStatusError) this.#statusErrors++;
    return codeOf(error);
  }

  #count(reason: string): void {
    this.#options.metrics.watchRestarts.inc({ resource: this.#options.resource.plural, reason });
  }

  #selection() {
    const { namespace, fieldSelector, labelSelector } = this.#options;
    return {
      ...(namespace ? { namespace } : {}),
      ...(fieldSelector ? { fieldSelector } : {}),
      ...(labelSelector ? { labelSelector } : {}),
    };
  }

  #check(): HealthResult {
    const { clock, lostContactMs = 60_000 } = this.#options;
    const seconds = Math.round((clock.monotonic() - this.#lostAt) / 1000);
    const because = this.#lastError === undefined ? "" : `: ${messageOf(this.#lastError)}`;
    const errorId = errorIdOf(this.#lastError);
    if (!this.#isSynced) return { ok: false, message: `no list yet after ${seconds} s${because}`, errorId };
    if (this.#isOpen) return { ok: true, message: "watching" };
    // A lost connection is restored by itself; a missing permission has to be granted, so it is reported at once.
    const isRefused = this.#lastError !== undefined && codeOf(this.#lastError) === "forbidden";
    const ok = !isRefused && clock.monotonic() - this.#lostAt <= lostContactMs;
    return { ok, message: `no watch for ${seconds} s${because}`, errorId };
  }
}

/** Whether the server has not got as far as the version asked for: its cache is behind, or it was restored from a backup. */
function isTooNew(error: unknown): boolean {
  if (!(error instanceof ApiStatusError)) return false;
  return error.summary.causes.some(({ reason }) => reason === "ResourceVersionTooLarge");
}
