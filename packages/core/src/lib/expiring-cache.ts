import type { Clock } from "./clock.ts";
import { SharedWork } from "./shared-work.ts";

interface ExpiringCacheOptions {
  clock: Clock;
  /** Above this number, the least recently used entry is evicted. */
  maxEntries: number;
}

/** Caches values by key for a limited time. Concurrent callers share one computation; failures are not cached. */
export class ExpiringCache<V> {
  readonly #options: ExpiringCacheOptions;
  readonly #entries = new Map<string, { value: V; until: number }>();
  readonly #pending = new Map<string, SharedWork<V>>();

  constructor(options: ExpiringCacheOptions) {
    this.#options = options;
  }

  /**
   * Returns the cached value of a key, or computes it. Rejects like `compute`.
   * @param ttlMs returns how long a computed value may be used, in milliseconds
   */
  async get(key: string, compute: () => Promise<V>, ttlMs: (value: V) => number): Promise<V> {
    const kept = this.#entries.get(key);
    if (kept && this.#options.clock.monotonic() < kept.until) {
      this.#entries.delete(key);
      this.#entries.set(key, kept);
      return kept.value;
    }
    const pending = this.#pending.get(key) ?? this.#start(key, compute, ttlMs);
    return await pending.join();
  }

  #start(key: string, compute: () => Promise<V>, ttlMs: (value: V) => number): SharedWork<V> {
    const work = new SharedWork(async () => {
      try {
        const value = await compute();
        this.#keep(key, value, ttlMs(value));
        return value;
      } finally {
        this.#pending.delete(key);
      }
    });
    this.#pending.set(key, work);
    return work;
  }

  #keep(key: string, value: V, ttlMs: number): void {
    this.#entries.delete(key);
    this.#entries.set(key, { value, until: this.#options.clock.monotonic() + ttlMs });
    const [oldest] = this.#entries.keys();
    if (this.#entries.size > this.#options.maxEntries && oldest !== undefined) this.#entries.delete(oldest);
  }
}
