import { OneRead } from "./one-read.ts";
import type { Range } from "./scale.ts";

/** Reads one page of the items in a range, oldest first. */
export type ReadPage<T> = (
  query: PageQuery,
  signal: AbortSignal,
) => Promise<{ items: T[]; next?: number | undefined }>;

export interface PageQuery {
  since: number;
  until: number;
  /** `next` of the previous page. */
  after: number | undefined;
  /** At most one item per interval, if the path supports thinning; milliseconds. */
  step: number;
}

export interface PagedHistoryOptions<T> {
  read: ReadPage<T>;
  merge: (known: readonly T[], added: readonly T[]) => T[];
  onChange: () => void;
  now: () => number;
  /** Maximum number of items kept. In a range that has more, reading stops there. */
  most: number;
  /** Whether fewer items are requested for long ranges. */
  isThinned: boolean;
}

// As many as are distinguishable on a wide screen.
const MOST_STEPS = 800;

interface Stretch extends Range {
  step: number;
}

/**
 * Items of a range before the page was opened: marks, readings. Reads the shown range and half its width on both sides,
 * so that short moves need no request.
 */
export class PagedHistory<T> {
  items: readonly T[] = [];
  /** Whether the range has more items than are kept. */
  isCut = false;
  version = 0;
  readonly #options: PagedHistoryOptions<T>;
  readonly #reading: OneRead<Stretch>;
  #held: Stretch | undefined;

  constructor(options: PagedHistoryOptions<T>) {
    this.#options = options;
    this.#reading = new OneRead(options);
  }

  get isReading(): boolean {
    return this.#reading.wanted !== undefined;
  }

  /** Why the last read failed. */
  get error(): unknown {
    return this.#reading.error;
  }

  /**
   * Reads what is missing in a range up to `end`, after which the stream has everything. Cancels a request for another
   * range.
   */
  want(range: Range, end: number): void {
    const { isThinned } = this.#options;
    const step = isThinned ? Math.floor((range.to - range.from) / MOST_STEPS) : 0;
    const wanted = { from: range.from, to: Math.min(range.to, end), step };
    if (wanted.from >= end || covers(this.#held, wanted)) {
      this.close();
      return;
    }
    if (covers(this.#reading.wanted, wanted) || !this.#reading.mayStart) return;
    const margin = (range.to - range.from) / 2;
    const stretch = {
      from: Math.max(Math.floor(range.from - margin), 0),
      to: Math.ceil(Math.min(range.to + margin, end)),
      step,
    };
    this.#reading.start(stretch, (signal) => this.#read(stretch, signal));
  }

  close(): void {
    this.#reading.cancel();
  }

  /** Drops all items, for example after a change of the agent. */
  reset(): void {
    this.close();
    this.#held = undefined;
  }

  async #read(wanted: Stretch, signal: AbortSignal): Promise<void> {
    const { read, merge, most } = this.#options;
    let items: T[] = [];
    let after: number | undefined;
    do {
      const page = await read({ since: wanted.from, until: wanted.to, after, step: wanted.step }, signal);
      signal.throwIfAborted();
      items = merge(items, page.items);
      after = page.next;
    } while (after !== undefined && items.length < most);
    this.items = items;
    this.isCut = after !== undefined;
    this.#held = wanted;
    this.version++;
  }
}

// A finer step is acceptable up to a point; otherwise a long range would keep the items of a short one.
function covers(held: Stretch | undefined, wanted: Stretch): boolean {
  return (
    held !== undefined && held.from <= wanted.from && held.to >= wanted.to && held.step <= 2 * wanted.step + 1
  );
}
