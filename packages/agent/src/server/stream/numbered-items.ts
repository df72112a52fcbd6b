import { SharedWork } from "@nodekeeper/core/lib";

/** Items that are sent one by one, ordered by id. */
export interface NumberedItems {
  /** The newest id; 0 if there are no items. */
  readonly lastId: number;
  /** Returns some of the items with a greater id, in order. Empty if they cannot be read. */
  after(id: number, signal: AbortSignal): Promise<readonly NumberedItem[]>;
}

interface NumberedItem {
  readonly id: number;
}

interface Page {
  after: number;
  /** The newest id at the time of the read. */
  last: number;
  work: SharedWork<readonly NumberedItem[]>;
  found: readonly NumberedItem[] | undefined;
}

/**
 * Shares the last page among all streams that continue from the same item, because decoding a round with all its pods
 * takes milliseconds.
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

  /** Drops the page. Called when the last stream has ended. */
  clear(): void {
    this.#page = undefined;
  }
}
