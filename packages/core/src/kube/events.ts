import {
  type Clock,
  codeOf,
  delayAfter,
  isTransient,
  type Logger,
  RecentMap,
  type Runnable,
  retryPolicies,
  sleepOrAbort,
  TokenBucket,
  WakeableSleep,
} from "../lib/index.ts";
import { type EventInput, eventKey, newEvent, objectKey, truncated } from "./event-objects.ts";
import type { KubeMetrics } from "./metrics.ts";
import type { ApiResource, KubeClient } from "./types.ts";

export interface EventRecorderOptions {
  client: KubeClient;
  clock: Clock;
  log: Logger;
  metrics: KubeMetrics;
  /** Reporting component: "nodekeeper". */
  component: string;
  /** Name of the node. */
  host: string;
  /** Maximum number of distinct Events waiting to be written. Default 1,000. */
  queueLength?: number;
  /** Rate limit per object: a burst, then `perSecond`. Default: 25, then one every five minutes, as in client-go. */
  perObject?: { perSecond: number; burst: number };
}

interface Pending {
  input: EventInput;
  times: number;
  firstAt: number;
  lastAt: number;
}

interface Written {
  name: string;
  namespace: string;
  count: number;
}

// Events, and objects with a rate limit. A repeated Event that is no longer remembered is created as a new one.
const MOST_REMEMBERED = 500;
const MOST_TRIES = 4;
const EVENTS: ApiResource = {
  group: "",
  version: "v1",
  kind: "Event",
  plural: "events",
  namespaced: true,
};

/**
 * Writes core/v1 Events on a best-effort basis: `record` never throws and never waits, and Events that cannot be
 * written are counted. Repeated Events (same object, type, reason and message) become one Event with a count.
 */
export class EventRecorder implements Runnable {
  readonly name = "event recorder";
  readonly #options: EventRecorderOptions;
  readonly #queueLength: number;
  readonly #perObject: { perSecond: number; burst: number };
  readonly #queue = new Map<string, Pending>();
  readonly #written = new RecentMap<string, Written>(MOST_REMEMBERED);
  readonly #buckets = new RecentMap<string, TokenBucket>(MOST_REMEMBERED);
  readonly #recorded = new WakeableSleep();

  constructor(options: EventRecorderOptions) {
    this.#options = options;
    this.#queueLength = options.queueLength ?? 1_000;
    this.#perObject = options.perObject ?? { perSecond: 1 / 300, burst: 25 };
  }

  /** Queues an Event. Messages longer than 1,024 bytes are truncated. */
  record(input: EventInput): void {
    const now = this.#options.clock.now();
    const event = { ...input, message: truncated(input.message) };
    const key = eventKey(event);
    const waiting = this.#queue.get(key);
    if (waiting) {
      waiting.times++;
      waiting.lastAt = now;
      return;
    }
    if (this.#queue.size >= this.#queueLength) {
      this.#count("dropped");
      return;
    }
    this.#queue.set(key, { input: event, times: 1, firstAt: now, lastAt: now });
    this.#recorded.wake();
  }

  /** Writes recorded Events until the signal aborts. Remaining Events are dropped. */
  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      this.#recorded.clear();
      const [first] = this.#queue;
      if (!first) {
        await this.#recorded.waitOrAbort(this.#options.clock, Number.POSITIVE_INFINITY, signal);
        continue;
      }
      this.#queue.delete(first[0]);
      await this.#write(first[0], first[1], signal);
    }
    this.#count("dropped", this.#queue.size);
    this.#queue.clear();
  }

  async #write(key: string, pending: Pending, signal: AbortSignal): Promise<void> {
    const known = this.#written.get(key);
    if (known) known.count += pending.times;
    if (!this.#bucketOf(pending.input).tryTake()) {
      // The count of a repeated Event is kept and included in the next permitted write.
      this.#count("limited");
      return;
    }
    for (let tries = 1; ; tries++) {
      try {
        await this.#send(key, pending, signal);
        return;
      } catch (error) {
        if (signal.aborted || !isTransient(codeOf(error)) || tries >= MOST_TRIES) {
          this.#count(signal.aborted ? "dropped" : "failed");
          if (!signal.aborted) this.#complain(pending, error);
          return;
        }
        await sleepOrAbort(this.#options.clock, delayAfter(tries - 1, retryPolicies.event), signal);
      }
    }
  }

  async #send(key: string, pending: Pending, signal: AbortSignal): Promise<void> {
    const known = this.#written.get(key);
    if (known && (await this.#repeat(known, pending, signal))) {
      this.#written.set(key, known);
      this.#count("repeated");
      return;
    }
    const { client, component, host } = this.#options;
    const count = known?.count ?? pending.times;
    const event = newEvent(pending.input, {
      component,
      host,
      count,
      firstAt: pending.firstAt,
      lastAt: pending.lastAt,
    });
    const { name = "", namespace = "" } = event.metadata;
    await client.create(EVENTS, event, { signal });
    this.#written.set(key, { name, namespace, count });
    this.#count("created");
  }

  /** Returns false if the Event expired. By default, the API server deletes Events after an hour. */
  async #repeat(known: Written, pending: Pending, signal: AbortSignal): Promise<boolean> {
    const patch = { count: known.count, lastTimestamp: new Date(pending.lastAt).toISOString() };
    const { name, namespace } = known;
    try {
      await this.#options.client.mergePatch(EVENTS, name, patch, { namespace, signal });
      return true;
    } catch (error) {
      if (codeOf(error) !== "notFound") throw error;
      known.count = pending.times;
      return false;
    }
  }

  #bucketOf(input: EventInput): TokenBucket {
    const key = objectKey(input);
    const bucket = this.#buckets.get(key) ?? new TokenBucket(this.#options.clock, this.#perObject);
    this.#buckets.set(key, bucket);
    return bucket;
  }

  #count(result: string, times = 1): void {
    if (times > 0) this.#options.metrics.events.inc({ result }, times);
  }

  #complain({ input }: Pending, error: unknown): void {
    const { kind, name, namespace } = input.regarding;
    this.#options.log.warn(
      { err: error, reason: input.reason, kind, object: { namespace, name } },
      "failed to write Event",
    );
  }
}
