import { Refusal } from "../../api.ts";
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

const RETRY_MS = 3_000;
// As many as can be distinguished on a wide screen.
const MOST_STEPS = 800;

/**
 * Items of a stretch of time that were before the page was opened: marks, readings. What is shown and half as much on both sides
 * is read at once, so that a short move needs no request.
 */
export class PagedHistory<T> {
  items: readonly T[] = [];
  isReading = false;
  error: unknown;
  /** Whether the stretch has more than is kept. */
  isCut = false;
  version = 0;
  readonly #options: PagedHistoryOptions<T>;
  #held: (Range & { step: number }) | undefined;
  #readingFor: (Range & { step: number }) | undefined;
  #failedAt = Number.NEGATIVE_INFINITY;
  #stop = new AbortController();

  constructor(options: PagedHistoryOptions<T>) {
    this.#options = options;
  }

  /** Reads what a stretch lacks up to `end`, since when the stream has all. A request that serves another one is cancelled. */
  want(range: Range, end: number): void {
    const { isThinned, now } = this.#options;
    const step = isThinned ? Math.floor((range.to - range.from) / MOST_STEPS) : 0;
    const wanted = { from: range.from, to: Math.min(range.to, end), step };
    if (wanted.from >= end || covers(this.#held, wanted)) {
      this.close();
      return;
    }
    if (this.isReading && covers(this.#readingFor, wanted)) return;
    if (this.error instanceof Refusal && this.error.isNotFound) return;
    if (now() - this.#failedAt < RETRY_MS) return;
    const margin = (range.to - range.from) / 2;
    this.#start({
      from: Math.max(Math.floor(range.from - margin), 0),
      to: Math.ceil(Math.min(range.to + margin, end)),
      step,
    });
  }

  close(): void {
    if (!this.isReading) return;
    this.#stop.abort();
    this.isReading = false;
  }

  /** Forgets what is held, as after a change of the agent. */
  reset(): void {
    this.close();
    this.#held = undefined;
  }

  #start(wanted: Range & { step: number }): void {
    this.close();
    const stop = new AbortController();
    this.#stop = stop;
    this.isReading = true;
    this.#readingFor = wanted;
    const end = (error?: unknown) => {
      if (stop.signal.aborted) return;
      this.isReading = false;
      this.error = error;
      if (error !== undefined) this.#failedAt = this.#options.now();
      this.#options.onChange();
    };
    this.#read(wanted, stop.signal).then(() => end(), end);
  }

  async #read(wanted: Range & { step: number }, signal: AbortSignal): Promise<void> {
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
function covers(held: (Range & { step: number }) | undefined, wanted: Range & { step: number }): boolean {
  return (
    held !== undefined && held.from <= wanted.from && held.to >= wanted.to && held.step <= 2 * wanted.step + 1
  );
}
