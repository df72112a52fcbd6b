import type { Clock } from "./clock.ts";
import { RecentMap } from "./recent-map.ts";
import { SharedWork } from "./shared-work.ts";

interface ExpiringCacheOptions {
  clock: Clock;
  /** Above this number, the least recently used entry is evicted. */
  maxEntries: number;
}

/** Caches values by key for a limited time. Concurrent callers share one computation; failures are not cached. */
export class ExpiringCache<V> {
  readonly #clock: Clock;
  readonly #entries: RecentMap<string, { value: V; until: number }>;
  readonly #pending = new Map<string, SharedWork<V>>();

  constructor({ clock, maxEntries }: ExpiringCacheOptions) {
    this.#clock = clock;
    this.#entries = new RecentMap(maxEntries);
  }

  /**
   * Returns the cached value of a key, or computes it. Rejects like `compute`.
   * @param ttlMs returns how long a computed value may be used, in milliseconds
   */
  async get(key: string, compute: () => Promise<V>, ttlMs: (value: V) => number): Promise<V> {
    const kept = this.#entries.get(key);
    if (kept && this.#clock.monotonic() < kept.until) {
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
        this.#entries.set(key, { value, until: this.#clock.monotonic() + ttlMs(value) });
        return value;
      } finally {
        this.#pending.delete(key);
      }
    });
    this.#pending.set(key, work);
    return work;
  }
}
