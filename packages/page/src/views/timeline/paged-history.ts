import { OneRead } from "./one-read.ts";
import type { Range } from "./scale.ts";

/** What a history reads from: one page of the items of a stretch of time, oldest first. */
export type ReadPage<T> = (
  query: PageQuery,
  signal: AbortSignal,
) => Promise<{ items: T[]; next?: number | undefined }>;

export interface PageQuery {
  since: number;
  until: number;
  /** `next` of the page before. */
  after: number | undefined;
  /** At most one item per so long, where the address can thin them; milliseconds. */
  step: number;
}

export interface PagedHistoryOptions<T> {
  read: ReadPage<T>;
  merge: (known: readonly T[], added: readonly T[]) => T[];
  onChange: () => void;
  now: () => number;
  /** Items that are kept at most; a stretch that has more is read up to there. */
  most: number;
  /** Whether fewer items are asked for where the stretch is long. */
  isThinned: boolean;
}

// As many as can be distinguished on a wide screen.
const MOST_STEPS = 800;

interface Stretch extends Range {
  step: number;
}

/**
 * Items of a stretch of time that were before the page was opened: marks, readings. What is shown and half as much on both sides
 * is read at once, so that a short move needs no request.
 */
export class PagedHistory<T> {
  items: readonly T[] = [];
  /** Whether the stretch has more than is kept. */
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

  /** Reads what a stretch lacks up to `end`, since when the stream has all. A request that serves another one is cancelled. */
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

  /** Forgets what is held, as after a change of the agent. */
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

// Finer than needed is good enough, up to a point: else a long stretch would keep the items of a short one.
function covers(held: Stretch | undefined, wanted: Stretch): boolean {
  return (
    held !== undefined && held.from <= wanted.from && held.to >= wanted.to && held.step <= 2 * wanted.step + 1
  );
}
