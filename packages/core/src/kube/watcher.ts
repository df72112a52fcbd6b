import { ApiServerUnreachable } from "@nodekeeper/api/errors";
import {
  Backoff,
  type Clock,
  codeOf,
  errorIdOf,
  type HealthCheck,
  type HealthResult,
  type Logger,
  messageOf,
  type Runnable,
  retryAfterOf,
  retryPolicies,
  sleepOrAbort,
} from "../lib/index.ts";
import { ContainedHandler } from "./contained-handler.ts";
import { ApiStatusError } from "./http-errors.ts";
import type { KubeMetrics } from "./metrics.ts";
import type { ApiResource, KubeApiClient, ListOptions, WatchEvent, WatchHandler } from "./types.ts";
import { BOOKMARK_SILENCE_MS, MalformedStreamError, StreamStatusError } from "./watch.ts";
import { WatchedObjects } from "./watch-budget.ts";

/** Dependencies of all watchers of one API server. */
export interface WatcherContext {
  client: KubeApiClient;
  clock: Clock;
  log: Logger;
  metrics: KubeMetrics;
  random?: () => number;
}

/** The objects that a watcher reads, and who is notified of them. */
export interface WatchTarget
  extends Pick<ListOptions, "namespace" | "fieldSelector" | "labelSelector" | "pageSize" | "parse"> {
  resource: ApiResource;
  handler: WatchHandler;
}

/** Range of the random timeout requested for each watch, in seconds. */
const TIMEOUT = { min: 300, max: 600 };
/**
 * The same once the server has sent a bookmark: missing bookmarks then reveal a broken connection, and every restarted
 * watch is one more request of every node.
 */
const TIMEOUT_WITH_BOOKMARKS = { min: 1_200, max: 2_400 };
/** The health check fails after this time without a watch. */
const LOST_CONTACT_MS = 60_000;
/**
 * A watch that ends earlier than this before its timeout counts as failed. A server that shuts down ends the watches of
 * all nodes at once, and they must not restart at once.
 */
const EARLY_MS = 5_000;
/** A silent watch proves contact once it has been open for this long: the server sends earlier changes first. */
const PROOF_MS = 5_000;
/** Time after its timeout until the server of a silent watch is considered unreachable. */
const INACTIVITY_MARGIN_MS = 30_000;
/** After this number of consecutive ERROR events, the objects are listed again. */
const MOST_STATUS_ERRORS = 3;

/** Required freshness of a list: any cached version, not older than the last one seen, or the newest. */
type Freshness = "any" | "not older" | "newest";

/**
 * Notifies a handler of the objects of one resource. Lists, then watches until stopped. After a lost connection, the
 * watch resumes at the last version seen. After an expired version, a malformed stream, or an exceeded limit
 * (`WatchBudget`, `WatchedObjects`), the objects are listed again and onReplace is called. All failures are retried
 * with jittered backoff.
 */
export class Watcher implements Runnable {
  readonly name: string;
  /** Resolves after the first onReplace. Never rejects. Stays pending if the watcher is stopped before. */
  readonly synced: Promise<void>;
  readonly #context: WatcherContext;
  readonly #target: WatchTarget;
  readonly #handler: ContainedHandler;
  readonly #backoff: Backoff;
  readonly #markSynced: () => void;
  readonly #random: () => number;
  /** Objects that watches added since the last list. */
  readonly #watched: WatchedObjects;
  #isSynced = false;
  // The last version seen.
  #resourceVersion: string | undefined;
  // Required freshness of the next list. Undefined if the next watch can start without a list.
  #needed: Freshness | undefined = "any";
  #statusErrors = 0;
  // Consecutive expired versions without an event in between.
  #expirations = 0;
  /** Monotonic time of the last list, event, or watch that lasted. */
  #lostAt: number;
  /** Monotonic time since when a watch is open. */
  #openedAt: number | undefined;
  #sendsBookmarks = false;
  #lastError: unknown;

  constructor(context: WatcherContext, target: WatchTarget) {
    const { clock, random = Math.random } = context;
    this.#context = context;
    this.#target = target;
    this.#random = random;
    this.name = `watch ${target.resource.plural}`;
    this.#watched = new WatchedObjects(this.name);
    this.#handler = new ContainedHandler({ ...context, ...target });
    this.#backoff = new Backoff({ ...retryPolicies.apiWatch, random });
    const { promise, resolve } = Promise.withResolvers<void>();
    this.synced = promise;
    this.#markSynced = resolve;
    this.#lostAt = clock.monotonic();
  }

  /** Whether the handler has received a complete list. */
  get isSynced(): boolean {
    return this.#isSynced;
  }

  /** Error of the last watch. Undefined while a watch is open. */
  get lastError(): unknown {
    return this.#lastError;
  }

  async run(signal: AbortSignal): Promise<void> {
    this.#lostAt = this.#context.clock.monotonic();
    while (!signal.aborted) {
      try {
        if (this.#needed) await this.#list(this.#needed, signal);
        await this.#watch(signal);
        this.#count("ended");
      } catch (error) {
        if (signal.aborted) return;
        const delayMs = this.#failed(error);
        await sleepOrAbort(this.#context.clock, delayMs, signal);
      }
    }
  }

  /**
   * Fails until the first list, while the watch is forbidden, and after 60 s without a list, an event, or a
   * watch that lasted 5 s.
   */
  healthCheck(): HealthCheck {
    return { name: this.name, kind: "ready", check: () => this.#check() };
  }

  async #list(needed: Freshness, signal: AbortSignal): Promise<void> {
    const { resource, pageSize } = this.#target;
    const { items, resourceVersion } = await this.#context.client.list(resource, {
      ...this.#selection(),
      ...this.#listVersion(needed),
      ...(pageSize ? { pageSize } : {}),
      signal,
    });
    this.#needed = undefined;
    this.#heard();
    this.#watched.clear();
    this.#handler.replace(items, resourceVersion);
    this.#resourceVersion = resourceVersion;
    this.#isSynced = true;
    this.#markSynced();
  }

  /**
   * Only the newest version bypasses the watch cache, which is indexed by node. To serve it, servers before 1.31 read
   * all objects of the resource from etcd, regardless of the selector, so thousands of nodes must not request it after
   * an outage.
   */
  #listVersion(needed: Freshness): Pick<ListOptions, "resourceVersion"> {
    if (needed === "any") return { resourceVersion: "0" };
    if (needed === "newest" || this.#resourceVersion === undefined) return {};
    return { resourceVersion: this.#resourceVersion };
  }

  async #watch(signal: AbortSignal): Promise<void> {
    const { client, clock } = this.#context;
    const { handler, resource } = this.#target;
    // Without bookmarks, a broken connection is detected only at the end of the watch.
    const { min, max } = this.#sendsBookmarks ? TIMEOUT_WITH_BOOKMARKS : TIMEOUT;
    const timeoutSeconds = Math.round(min + this.#random() * (max - min));
    const startedAt = clock.monotonic();
    try {
      await client.watch(resource, {
        ...this.#selection(),
        signal,
        resourceVersion: this.#resourceVersion ?? "",
        timeoutSeconds,
        inactivityMs: Math.min(
          timeoutSeconds * 1000 + INACTIVITY_MARGIN_MS,
          this.#sendsBookmarks ? BOOKMARK_SILENCE_MS : Number.POSITIVE_INFINITY,
        ),
        onOpen: () => this.#opened(),
        onEvent: (event, length) => this.#take(event, length),
        ...(handler.knownVersion && { knownVersion: (head) => this.#handler.knownVersion(head) }),
        onKnown: (version) => {
          this.#progressed();
          this.#resourceVersion = version;
        },
      });
    } finally {
      if (this.#isProven) this.#heard();
      this.#openedAt = undefined;
      if (clock.monotonic() - startedAt >= retryPolicies.apiWatch.maxMs) {
        this.#backoff.reset();
        this.#expirations = 0;
      }
    }
    const lastedMs = clock.monotonic() - startedAt;
    if (lastedMs >= timeoutSeconds * 1000 - EARLY_MS) return;
    const after = `after ${Math.round(lastedMs / 1000)} of ${timeoutSeconds} s`;
    throw new ApiServerUnreachable({ problem: `${this.name}: the server ended the watch ${after}` });
  }

  #opened(): void {
    this.#openedAt = this.#context.clock.monotonic();
    this.#lastError = undefined;
    this.#handler.open();
  }

  // An accepted watch that ends at once, or with an expired version, may have brought none of the changes so far.
  get #isProven(): boolean {
    return this.#openedAt !== undefined && this.#context.clock.monotonic() - this.#openedAt >= PROOF_MS;
  }

  #heard(): void {
    this.#lostAt = this.#context.clock.monotonic();
  }

  #progressed(): void {
    this.#heard();
    this.#backoff.reset();
    this.#statusErrors = 0;
    this.#expirations = 0;
  }

  #take(event: WatchEvent, length: number): void {
    this.#watched.take(event, length);
    this.#progressed();
    const { type, object } = event;
    if (type === "BOOKMARK") {
      this.#sendsBookmarks = true;
      this.#handler.bookmark();
    } else if (type === "DELETED") this.#handler.delete(object);
    else this.#handler.upsert(type, object);
    if (object.metadata.resourceVersion) this.#resourceVersion = object.metadata.resourceVersion;
  }

  /**
   * Records the failure, decides whether to list again, and returns the delay before the next attempt, in milliseconds.
   */
  #failed(error: unknown): number {
    this.#lastError = error;
    const reason = this.#reasonOf(error);
    if (isTooNew(error)) this.#needed = "newest";
    else if (reason === "expired") this.#expired();
    else if (reason === "malformed" || reason === "exhausted" || this.#statusErrors >= MOST_STATUS_ERRORS) {
      this.#needed ??= "not older";
      this.#statusErrors = 0;
    }
    this.#count(reason);
    const delayMs = this.#backoff.next(retryAfterOf(error));
    const fields = {
      err: error,
      resource: this.#target.resource.plural,
      reason,
      delayMs: Math.round(delayMs),
    };
    this.#context.log.warn(fields, "watch failed, retrying");
    return delayMs;
  }

  // The usual case after an outage. The server responds, so the next request need not wait long.
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
    this.#context.metrics.watchRestarts.inc({ resource: this.#target.resource.plural, reason });
  }

  #selection() {
    const { namespace, fieldSelector, labelSelector, parse } = this.#target;
    return {
      ...(namespace ? { namespace } : {}),
      ...(parse ? { parse } : {}),
      ...(fieldSelector ? { fieldSelector } : {}),
      ...(labelSelector ? { labelSelector } : {}),
    };
  }

  #check(): HealthResult {
    const { clock } = this.#context;
    const seconds = Math.round((clock.monotonic() - this.#lostAt) / 1000);
    const because = this.#lastError === undefined ? "" : `: ${messageOf(this.#lastError)}`;
    const errorId = errorIdOf(this.#lastError);
    if (!this.#isSynced) return { ok: false, message: `no list yet after ${seconds} s${because}`, errorId };
    if (this.#isProven) return { ok: true, message: "watching" };
    // A lost connection recovers without intervention. A missing permission does not, so it is reported immediately.
    const isRefused = this.#lastError !== undefined && codeOf(this.#lastError) === "forbidden";
    const ok = !isRefused && clock.monotonic() - this.#lostAt <= LOST_CONTACT_MS;
    if (ok && this.#openedAt !== undefined) return { ok, message: "watching" };
    return { ok, message: `no watch for ${seconds} s${because}`, errorId };
  }
}

/**
 * Returns whether the requested version is newer than the server's: its cache lags, or it was restored from a backup.
 */
function isTooNew(error: unknown): boolean {
  if (!(error instanceof ApiStatusError)) return false;
  return error.summary.causes.some(({ reason }) => reason === "ResourceVersionTooLarge");
}
