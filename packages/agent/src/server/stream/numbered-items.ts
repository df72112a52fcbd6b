import { SharedWork } from "@nodekeeper/core/lib";

/** Items that are sent one by one, in the order of their ids. */
export interface NumberedItems {
  /** The id of the newest; 0 where there is none. */
  readonly lastId: number;
  /** Some of those with a greater id, in order; none where they can't be read. */
  after(id: number, signal: AbortSignal): Promise<readonly NumberedItem[]>;
}

interface NumberedItem {
  readonly id: number;
}

interface Page {
  after: number;
  /** The newest item when it was read. */
  last: number;
  work: SharedWork<readonly NumberedItem[]>;
  found: readonly NumberedItem[] | undefined;
}

/**
 * The same items, of which the last page is read once for all streams that continue from the same item: a round is decoded
 * with all its pods, which takes milliseconds.
 */
export class SharedItems implements NumberedItems {
  readonly #items: NumberedItems;
  #page: Page | undefined;

  constructor(items: NumberedItems) {
    this.#items = items;
  }

  get lastId(): number {
    return this.#items.lastId;
  }

  async after(id: number, signal: AbortSignal): Promise<readonly NumberedItem[]> {
    const last = this.lastId;
    if (this.#page?.after !== id || this.#page.last !== last) {
      const work = new SharedWork((scope) => this.#items.after(id, scope));
      this.#page = { after: id, last, work, found: undefined };
    }
    const page = this.#page;
    page.found ??= await page.work.join(signal);
    return page.found;
  }

  /** Frees the page, when the last stream has ended. */
  clear(): void {
    this.#page = undefined;
  }
}
