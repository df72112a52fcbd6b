import { StateNotWritable } from "@nodekeeper/api/errors";
import { type Clock, type Logger, messageOf, type Timer } from "@nodekeeper/core/lib";

export interface WriteBehindOptions {
  /** Name of the data for the log, such as "reporter checkpoint". */
  what: string;
  /** Writes all pending data in one transaction. If it throws, all data remains pending. */
  write: () => void;
  log: Logger;
  /** For `soon` and for retries every 5 s. Without a clock, only the next `flush` retries a failed write. */
  clock?: Clock;
  /**
   * Called after each failed write, for counting it or for bounding the pending data.
   * @param isFirst whether the previous write succeeded
   */
  onFailure?: (error: unknown, isFirst: boolean) => void;
}

// A retry writes all pending data. On a nearly full disk, 20,000 events take 0.1 s to fail.
const RETRY_MS = 5_000;

/**
 * Writes data to the state database that its owner keeps in memory until then:
 *
 * 1. Data that could not be written remains with the owner, is retried, and is written once the disk is
 *    writable again.
 * 2. The first of several failures is logged as an error, and so is the recovery. `lastError` is for a health
 *    check.
 * 3. No method throws. Nothing is retried after `close`.
 */
export class WriteBehind {
  readonly #options: WriteBehindOptions;
  #timer: Timer | undefined;
  #isClosed = false;
  #lastError: string | undefined;

  constructor(options: WriteBehindOptions) {
    this.#options = options;
  }

  /** Error of the last write. Undefined if it succeeded. */
  get lastError(): string | undefined {
    return this.#lastError;
  }

  /** Whether a write by `soon` or a retry is pending. */
  get isPending(): boolean {
    return this.#timer !== undefined;
  }

  /** Writes within `ms` milliseconds, unless a write is pending. */
  soon(ms: number): void {
    const { clock } = this.#options;
    if (!this.#isClosed) this.#timer ??= clock?.after(ms, () => void this.flush());
  }

  /** Writes immediately. Returns whether it succeeded. */
  flush(): boolean {
    return this.attempt(this.#options.write);
  }

  /** Like `flush`, but with another write function, for example to add data that is not pending yet. */
  attempt(write: () => void): boolean {
    const { what, log } = this.#options;
    this.#timer?.cancel();
    this.#timer = undefined;
    try {
      write();
    } catch (error) {
      this.failed(error);
      return false;
    }
    if (this.#lastError !== undefined) log.info({}, `${what} can be written again`);
    this.#lastError = undefined;
    return true;
  }

  /** Records another failure, such as of the first read, that must be resolved by a write. */
  failed(error: unknown): void {
    const { what, log, onFailure } = this.#options;
    const isFirst = this.#lastError === undefined;
    this.#lastError = messageOf(error);
    if (isFirst)
      log.error(
        { errorId: StateNotWritable.id, err: error },
        `failed to write ${what}: it is kept in memory`,
      );
    onFailure?.(error, isFirst);
    this.soon(RETRY_MS);
  }

  /** Writes pending data one last time. */
  close(): void {
    this.#isClosed = true;
    if (this.isPending) this.flush();
  }
}

/** Determines which pending items are dropped first. */
export interface Standing {
  /** Items with the lowest rank are dropped first. Default: 0. */
  rank?: number;
  /**
   * Among the items with the lowest rank, the oldest one of the largest group is dropped, so a group
   * displaces only its own.
   */
  groups: readonly string[];
}

/** Items that are waiting to be written, oldest first. */
export class Backlog<T> {
  readonly #most: number;
  readonly #standingOf: ((item: T) => Standing) | undefined;
  #items: T[] = [];

  /**
   * @param most limit of items while the disk is full
   * @param standingOf if undefined, the oldest item is dropped
   */
  constructor(most: number, standingOf?: (item: T) => Standing) {
    this.#most = most;
    this.#standingOf = standingOf;
  }

  get items(): readonly T[] {
    return this.#items;
  }

  add(...items: readonly T[]): void {
    for (const item of items) this.#items.push(item);
  }

  /** Drops items beyond the limit and returns them. Must be called after a failed write. */
  bound(): T[] {
    const surplus = this.#items.length - this.#most;
    if (surplus <= 0) return [];
    if (this.#standingOf === undefined) return this.#items.splice(0, surplus);
    return Array.from({ length: surplus }, () => this.#items.splice(this.#leastImportant(), 1)[0]!);
  }

  /**
   * Passes each item to `write`, oldest first, and removes it. If `write` throws, that item and later ones
   * remain.
   */
  drain(write: (item: T) => void): void {
    for (let [first] = this.#items; first !== undefined; [first] = this.#items) {
      write(first);
      this.#items.shift();
    }
  }

  clear(): void {
    this.#items = [];
  }

  #leastImportant(): number {
    const all = this.#items.map((item, at) => ({ at, rank: 0, ...this.#standingOf!(item) }));
    const lowest = Math.min(...all.map(({ rank }) => rank));
    const candidates = all.filter(({ rank }) => rank === lowest);
    const counts = new Map<string, number>();
    for (const group of candidates.flatMap(({ groups }) => groups))
      counts.set(group, (counts.get(group) ?? 0) + 1);
    const most = Math.max(...counts.values());
    const one = candidates.find(({ groups }) => groups.some((group) => counts.get(group) === most));
    return (one ?? candidates[0]!).at;
  }
}
