import { NodekeeperError } from "@nodekeeper/api/errors";
import { type BackoffOptions, delayAfter } from "./backoff.ts";
import type { Clock, Timer } from "./clock.ts";
import type { Logger } from "./log.ts";
import { RecentMap } from "./recent-map.ts";
import { retryAfterOf } from "./retry.ts";
import type { WorkQueueMetrics } from "./work-queue-metrics.ts";

export interface WorkQueueOptions {
  /** Name of the queue in logs and metrics. */
  name: string;
  clock: Clock;
  log: Logger;
  /** Maximum number of distinct keys that are queued, waiting or in progress. Default 10,000. */
  maxKeys?: number;
  /** Delays of `addRateLimited` per key, by default without jitter. Default 5 ms to 1000 s, as in client-go. */
  backoff?: BackoffOptions;
  metrics?: WorkQueueMetrics;
  /** A key that only adds other keys. Its durations are not recorded, so that an idle queue has no series for it. */
  untimed?: string;
}

/** Processes one key. If it throws, the error is logged and the key is retried with backoff. */
type KeyHandler = (key: string, signal: AbortSignal) => Promise<void>;

interface Waiting {
  due: number;
  timer: Timer;
}

/**
 * A queue of keys with the guarantees of client-go's workqueue:
 *
 * 1. A key is never processed by two workers concurrently.
 * 2. A key added while queued is queued once. If it is added while in progress, it is processed again afterwards.
 * 3. Keys are processed in the order in which they were added.
 */
export class WorkQueue {
  readonly name: string;
  readonly #clock: Clock;
  readonly #log: Logger;
  readonly #maxKeys: number;
  readonly #backoff: BackoffOptions;
  readonly #metrics: WorkQueueMetrics | undefined;
  readonly #untimed: string | undefined;
  readonly #queue: string[] = [];
  /** Keys that need processing: those in the queue, and those added again while in progress. Value: time of the add. */
  readonly #needed = new Map<string, number>();
  /** Keys in progress. Value: start time. */
  readonly #working = new Map<string, number>();
  readonly #waiting = new Map<string, Waiting>();
  readonly #failures: RecentMap<string, number>;
  readonly #getters = new Set<(key: string | undefined) => void>();
  #isShutDown = false;

  constructor(options: WorkQueueOptions) {
    this.name = options.name;
    this.#clock = options.clock;
    this.#log = options.log;
    this.#maxKeys = options.maxKeys ?? 10_000;
    this.#failures = new RecentMap(this.#maxKeys);
    this.#backoff = { jitter: 0, ...(options.backoff ?? { baseMs: 5, maxMs: 1_000_000 }) };
    this.#metrics = options.metrics;
    this.#untimed = options.untimed;
    this.#metrics?.watch(this.name, () => this.#runningSeconds());
  }

  /** Number of keys that are ready for a worker. */
  get length(): number {
    return this.#queue.length;
  }

  /** Adds a key. Ignored after shutdown. Throws `exhausted` if the queue holds `maxKeys` other keys. */
  add(key: string): void {
    if (this.#isShutDown || this.#needed.has(key)) return;
    this.#admit(key);
    this.#needed.set(key, this.#clock.monotonic());
    this.#metrics?.added(this.name);
    if (!this.#working.has(key)) this.#enqueue(key);
  }

  /**
   * Adds a key after `ms`, or immediately if it is 0 or less. Of several calls, the earliest takes effect. Throws like
   * `add`.
   */
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
      // Added before it stops waiting, so that the key is never unknown and is not rejected.
      this.add(key);
      this.#waiting.delete(key);
    });
    this.#waiting.set(key, { due, timer });
  }

  /**
   * Adds a key after `notBeforeMs` plus its backoff, which doubles with each call until `forget`. Returns the delay in
   * milliseconds. Throws like `add`.
   */
  addRateLimited(key: string, notBeforeMs = 0): number {
    const failures = this.#failures.get(key) ?? 0;
    const delay = notBeforeMs + delayAfter(failures, this.#backoff);
    this.addAfter(key, delay);
    this.#metrics?.retried(this.name);
    this.#failures.set(key, failures + 1);
    return delay;
  }

  /** Resets the backoff of a key. Call it after the key was processed successfully. */
  forget(key: string): void {
    this.#failures.delete(key);
  }

  /** Returns whether a key waits for the delay of `addAfter`. */
  isWaiting(key: string): boolean {
    return this.#waiting.has(key);
  }

  /** Drops a key that waits for the delay of `addAfter`. */
  cancel(key: string): void {
    this.#waiting.get(key)?.timer.cancel();
    this.#waiting.delete(key);
  }

  /** Drops a key that is queued or was added again while in progress. Returns whether it was. */
  drop(key: string): boolean {
    if (!this.#needed.delete(key)) return false;
    const at = this.#queue.indexOf(key);
    if (at >= 0) this.#queue.splice(at, 1);
    this.#metrics?.depth(this.name, this.#queue.length);
    return true;
  }

  /** Returns the number of times that a key was added with backoff since it was last forgotten. */
  requeues(key: string): number {
    return this.#failures.get(key) ?? 0;
  }

  /** Returns the next key, which is in progress until `done`. Returns undefined if the queue is shut down and empty. */
  get(): Promise<string | undefined> {
    const key = this.#queue.shift();
    if (key !== undefined) {
      this.#begin(key);
      return Promise.resolve(key);
    }
    if (this.#isShutDown) return Promise.resolve(undefined);
    return new Promise((resolve) => void this.#getters.add(resolve));
  }

  /** Ends the processing of a key that `get` returned. */
  done(key: string): void {
    const startedAt = this.#working.get(key);
    if (startedAt === undefined) return;
    this.#working.delete(key);
    if (key !== this.#untimed)
      this.#metrics?.finished(this.name, (this.#clock.monotonic() - startedAt) / 1000);
    if (this.#needed.has(key)) this.#enqueue(key);
  }

  /**
   * Runs `workers` workers until the signal aborts. Then no more keys are accepted, queued keys are dropped and `run`
   * waits for the handlers in progress. A queue can run only once. With `Infinity` workers, no key waits for another
   * one; use it for handlers that wait for plugins.
   */
  async run(signal: AbortSignal, workers: number, handler: KeyHandler): Promise<void> {
    const onAbort = () => {
      this.#isShutDown = true;
      for (const { timer } of this.#waiting.values()) timer.cancel();
      this.#waiting.clear();
      for (const key of this.#queue.splice(0)) this.#needed.delete(key);
      this.#metrics?.depth(this.name, 0);
      for (const deliver of this.#getters) deliver(undefined);
      this.#getters.clear();
    };
    if (signal.aborted) onAbort();
    else signal.addEventListener("abort", onAbort, { once: true });
    if (workers === Number.POSITIVE_INFINITY) await this.#workAtOnce(signal, handler);
    else await Promise.all(Array.from({ length: workers }, () => this.#work(signal, handler)));
    signal.removeEventListener("abort", onAbort);
    this.#metrics?.unwatch(this.name);
  }

  async #work(signal: AbortSignal, handler: KeyHandler): Promise<void> {
    for (let key = await this.get(); key !== undefined; key = await this.get())
      await this.#handle(key, signal, handler);
  }

  async #workAtOnce(signal: AbortSignal, handler: KeyHandler): Promise<void> {
    const running = new Set<Promise<void>>();
    for (let key = await this.get(); key !== undefined; key = await this.get()) {
      const work = this.#handle(key, signal, handler).finally(() => running.delete(work));
      running.add(work);
    }
    await Promise.all(running);
  }

  async #handle(key: string, signal: AbortSignal, handler: KeyHandler): Promise<void> {
    try {
      // The key may have been delivered before an abort dropped it.
      if (!signal.aborted) await handler(key, signal);
      this.forget(key);
    } catch (error) {
      if (!signal.aborted) this.#retry(key, error);
    } finally {
      // After an abort, no worker takes keys that were added meanwhile.
      if (signal.aborted) this.#needed.delete(key);
      this.done(key);
    }
  }

  #retry(key: string, error: unknown): void {
    const retryInMs = Math.round(this.addRateLimited(key, retryAfterOf(error)));
    const failures = this.requeues(key);
    this.#log.warn(
      { queue: this.name, key, err: error, failures, retryInMs },
      "failed to sync key, requeuing",
    );
  }

  // A key that is already queued, waiting or in progress is always accepted.
  #admit(key: string): void {
    if (this.#needed.has(key) || this.#working.has(key) || this.#waiting.has(key)) return;
    if (this.#distinctKeys() < this.#maxKeys) return;
    this.#metrics?.refused(this.name);
    throw new NodekeeperError(
      "exhausted",
      `queue ${this.name} holds ${this.#maxKeys} keys and accepts no more: ${key}`,
    );
  }

  // The exact count is computed only near the limit.
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
    if (key !== this.#untimed)
      this.#metrics?.started(this.name, (now - (this.#needed.get(key) ?? now)) / 1000);
    this.#metrics?.depth(this.name, this.#queue.length);
    this.#needed.delete(key);
    this.#working.set(key, now);
  }

  #runningSeconds(): number[] {
    const now = this.#clock.monotonic();
    return [...this.#working.values()].map((startedAt) => (now - startedAt) / 1000);
  }
}
