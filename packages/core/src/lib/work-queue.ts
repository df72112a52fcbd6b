import { type BackoffOptions, delayAfter } from "./backoff.ts";
import type { Clock, Timer } from "./clock.ts";
import { NodekeeperError } from "./errors.ts";
import type { Logger } from "./log.ts";
import { retryAfterOf } from "./retry.ts";
import { TokenBucket, type TokenBucketOptions } from "./token-bucket.ts";
import type { WorkQueueMetrics } from "./work-queue-metrics.ts";

export interface WorkQueueOptions {
  /** Names the queue in logs and metrics. */
  name: string;
  clock: Clock;
  log: Logger;
  /** How many distinct keys may be queued, waiting or in work at once. Default 10,000. */
  maxKeys?: number;
  /** Delays of `addRateLimited` per key; without jitter where it has none. Default 5 ms to 1000 s, as client-go's. */
  backoff?: BackoffOptions;
  /** A bucket over all keys that `addRateLimited` also waits for. Default none. */
  overallRate?: TokenBucketOptions;
  metrics?: WorkQueueMetrics;
}

/** Works on one key. An error that it throws is logged and the key is retried with backoff. */
export type KeyHandler = (key: string, signal: AbortSignal) => Promise<void>;

interface Waiting {
  due: number;
  timer: Timer;
}

/**
 * A queue of keys with the guarantees of client-go's workqueue:
 * - a key is never worked on by two workers at once;
 * - a key added while queued is queued once; added while in work, it is worked on again afterwards;
 * - keys are worked on in the order in which they were added.
 */
export class WorkQueue {
  readonly name: string;
  readonly #clock: Clock;
  readonly #log: Logger;
  readonly #maxKeys: number;
  readonly #backoff: BackoffOptions;
  readonly #bucket: TokenBucket | undefined;
  readonly #metrics: WorkQueueMetrics | undefined;
  readonly #queue: string[] = [];
  /** Keys that need work: those in the queue, and those added again while in work. Value: when added. */
  readonly #needed = new Map<string, number>();
  /** Keys in work. Value: when work on it started. */
  readonly #working = new Map<string, number>();
  readonly #waiting = new Map<string, Waiting>();
  readonly #failures = new Map<string, number>();
  readonly #getters = new Set<(key: string | undefined) => void>();
  readonly #drainers = new Set<() => void>();
  #isShutDown = false;

  constructor(options: WorkQueueOptions) {
    this.name = options.name;
    this.#clock = options.clock;
    this.#log = options.log;
    this.#maxKeys = options.maxKeys ?? 10_000;
    this.#backoff = { jitter: 0, ...(options.backoff ?? { baseMs: 5, maxMs: 1_000_000 }) };
    this.#bucket = options.overallRate && new TokenBucket(options.clock, options.overallRate);
    this.#metrics = options.metrics;
    this.#metrics?.watch(this.name, () => this.#runningSeconds());
  }

  /** How many keys are ready for a worker. */
  get length(): number {
    return this.#queue.length;
  }

  /** Requests work on a key. Ignored after shutdown. Throws `exhausted` when the queue holds `maxKeys` other keys. */
  add(key: string): void {
    if (this.#isShutDown || this.#needed.has(key)) return;
    this.#admit(key);
    this.#needed.set(key, this.#clock.monotonic());
    this.#metrics?.added(this.name);
    if (!this.#working.has(key)) this.#enqueue(key);
  }

  /** Adds a key `ms` from now, at once for 0 or less. Of several such calls the earliest counts. Throws as `add` does. */
  addAfter(key: string, ms: number): void {
    if (this.#isShutDown) return;
    if (ms <= 0) {
      this.add(key);
      return;
    }
    const due = this.#clock.monotonic() + ms;
    const waiting = this.#waiting.get(key);
    if (waiting && waiting.due <= due) return;
    this.#admit(key);
    waiting?.timer.cancel();
    const timer = this.#clock.after(ms, () => {
      // Added before it stops waiting, so that it is a known key throughout and is not refused.
      this.add(key);
      this.#waiting.delete(key);
    });
    this.#waiting.set(key, { due, timer });
  }

  /**
   * Adds a key after its backoff, which doubles with each call until `forget`, and not before `notBeforeMs`, after which
   * the backoff begins. Returns the delay, milliseconds. Throws as `add` does.
   */
  addRateLimited(key: string, notBeforeMs = 0): number {
    const failures = this.#failures.get(key) ?? 0;
    // Added as by `Backoff.next`.
    const backoff = notBeforeMs + delayAfter(failures, this.#backoff);
    const delay = Math.max(backoff, this.#bucket?.reserve() ?? 0);
    this.addAfter(key, delay);
    this.#metrics?.retried(this.name);
    this.#failures.delete(key);
    this.#failures.set(key, failures + 1);
    if (this.#failures.size > this.#maxKeys) this.#failures.delete(this.#failures.keys().next().value!);
    return delay;
  }

  /** Ends a key's backoff; call it when work on the key succeeded. */
  forget(key: string): void {
    this.#failures.delete(key);
  }

  /** How often a key was added with backoff since it was last forgotten. */
  requeues(key: string): number {
    return this.#failures.get(key) ?? 0;
  }

  /** The next key, which is in work until `done`; undefined when the queue was shut down and is empty. Rejects with the signal's reason. */
  get(signal?: AbortSignal): Promise<string | undefined> {
    if (signal?.aborted) return Promise.reject(signal.reason);
    const key = this.#queue.shift();
    if (key !== undefined) {
      this.#begin(key);
      return Promise.resolve(key);
    }
    if (this.#isShutDown) return Promise.resolve(undefined);
    return new Promise((resolve, reject) => {
      const deliver = (delivered: string | undefined) => {
        signal?.removeEventListener("abort", onAbort);
        resolve(delivered);
      };
      const onAbort = () => {
        this.#getters.delete(deliver);
        reject(signal?.reason);
      };
      this.#getters.add(deliver);
      signal?.addEventListener("abort", onAbort, { once: true });
    });
  }

  /** Ends the work on a key got from `get`. */
  done(key: string): void {
    const startedAt = this.#working.get(key);
    if (startedAt === undefined) return;
    this.#working.delete(key);
    this.#metrics?.finished(this.name, (this.#clock.monotonic() - startedAt) / 1000);
    if (this.#needed.has(key)) this.#enqueue(key);
    this.#settleDrain();
  }

  /** Accepts no more keys and drops those that wait for their delay. `get` still returns keys already queued. */
  shutDown(): void {
    this.#isShutDown = true;
    for (const { timer } of this.#waiting.values()) timer.cancel();
    this.#waiting.clear();
    for (const deliver of this.#getters) deliver(undefined);
    this.#getters.clear();
    this.#settleDrain();
  }

  /** Shuts down and waits until no key is queued or in work. Rejects with the signal's reason. */
  drain(signal: AbortSignal): Promise<void> {
    this.shutDown();
    return new Promise((resolve, reject) => {
      const onDrained = () => {
        signal.removeEventListener("abort", onAbort);
        resolve();
      };
      const onAbort = () => {
        this.#drainers.delete(onDrained);
        reject(signal.reason);
      };
      if (signal.aborted) {
        reject(signal.reason);
        return;
      }
      signal.addEventListener("abort", onAbort, { once: true });
      this.#drainers.add(onDrained);
      this.#settleDrain();
    });
  }

  /**
   * Works with `workers` workers until the signal aborts or the queue is drained. On abort what is queued is dropped,
   * and `run` waits for handlers at work. A queue runs once.
   */
  async run(signal: AbortSignal, workers: number, handler: KeyHandler): Promise<void> {
    const onAbort = () => {
      this.shutDown();
      for (const key of this.#queue.splice(0)) this.#needed.delete(key);
      this.#metrics?.depth(this.name, 0);
      this.#settleDrain();
    };
    if (signal.aborted) onAbort();
    else signal.addEventListener("abort", onAbort, { once: true });
    await Promise.all(Array.from({ length: workers }, () => this.#work(signal, handler)));
    signal.removeEventListener("abort", onAbort);
    this.#metrics?.unwatch(this.name);
  }

  async #work(signal: AbortSignal, handler: KeyHandler): Promise<void> {
    for (let key = await this.get(); key !== undefined; key = await this.get()) {
      try {
        // A key dropped by an abort may have been handed over before it.
        if (!signal.aborted) await handler(key, signal);
        this.forget(key);
      } catch (error) {
        if (!signal.aborted) this.#retry(key, error);
      } finally {
        // After an abort no worker takes the keys that were added meanwhile.
        if (signal.aborted) this.#needed.delete(key);
        this.done(key);
      }
    }
  }

  #retry(key: string, error: unknown): void {
    const retryInMs = Math.round(this.addRateLimited(key, retryAfterOf(error)));
    const failures = this.requeues(key);
    this.#log.warn(
      { queue: this.name, key, err: error, failures, retryInMs },
      "work on a key failed; trying again",
    );
  }

  // A key that is queued, waiting or in work already takes no more room.
  #admit(key: string): void {
    if (this.#needed.has(key) || this.#working.has(key) || this.#waiting.has(key)) return;
    if (this.#distinctKeys() < this.#maxKeys) return;
    this.#metrics?.refused(this.name);
    throw new NodekeeperError(
      "exhausted",
      `queue ${this.name} holds ${this.#maxKeys} keys and takes no other: ${key}`,
    );
  }

  // Sizes first: the exact count is only taken near the bound.
  #distinctKeys(): number {
    const atMost = this.#needed.size + this.#working.size + this.#waiting.size;
    if (atMost < this.#maxKeys) return atMost;
    return new Set([...this.#needed.keys(), ...this.#working.keys(), ...this.#waiting.keys()]).size;
  }

  #enqueue(key: string): void {
    const [getter] = this.#getters;
    if (getter) {
      this.#getters.delete(getter);
      this.#begin(key);
      getter(key);
      return;
    }
    this.#queue.push(key);
    this.#metrics?.depth(this.name, this.#queue.length);
  }

  #begin(key: string): void {
    const now = this.#clock.monotonic();
    this.#metrics?.started(this.name, (now - (this.#needed.get(key) ?? now)) / 1000);
    this.#metrics?.depth(this.name, this.#queue.length);
    this.#needed.delete(key);
    this.#working.set(key, now);
  }

  #settleDrain(): void {
    if (!this.#isShutDown || this.#queue.length > 0 || this.#working.size > 0) return;
    for (const onDrained of this.#drainers) onDrained();
    this.#drainers.clear();
  }

  #runningSeconds(): number[] {
    const now = this.#clock.monotonic();
    return [...this.#working.values()].map((startedAt) => (now - startedAt) / 1000);
  }
}
