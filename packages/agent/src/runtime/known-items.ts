import type { WireReader } from "./wire-reader.ts";

type Read<Item> = (reader: WireReader, end: number) => Item;

// The first bytes of an ID, after its tag and length. IDs are random.
const KEY_AT = 2;
const KEY_END = 10;
const MAX_SPARE = 64;

/**
 * Decodes items of lists that rarely change. Returns the same object for an item whose relevant bytes have
 * not changed. Labels and other data after the relevant fields may differ, because runtimes encode maps in
 * any order.
 */
export class KnownItems<Item> {
  readonly #read: Read<Item>;
  readonly #lastTag: number;
  readonly #known = new Map<number, { bytes: Buffer; item: Item }>();
  #count = 0;

  /** @param lastTag the highest tag of a relevant field */
  constructor(read: Read<Item>, lastTag: number) {
    this.#read = read;
    this.#lastTag = lastTag;
  }

  /** Decodes the item from the reader's position to `end`. Throws RangeError if the bytes are invalid. */
  read(reader: WireReader, end: number): Item {
    this.#count++;
    const start = reader.position;
    let counts = start;
    for (let tag = reader.tag(end); tag !== 0; tag = reader.tag(end)) {
      reader.skip(tag);
      if (tag <= this.#lastTag) counts = reader.position;
    }
    const { bytes } = reader;
    const key = counts - start < KEY_END ? 0 : keyOf(bytes, start);
    const known = this.#known.get(key);
    if (known && bytes.compare(known.bytes, 0, known.bytes.length, start, counts) === 0) return known.item;
    reader.seek(start);
    const item = this.#read(reader, end);
    this.#known.set(key, { bytes: ownCopy(bytes, start, counts), item });
    return item;
  }

  /**
   * Called after a complete list. Clears the cache when it contains more than twice as many items as were
   * read since the previous complete list, plus 64.
   */
  listed(): void {
    if (this.#known.size > 2 * this.#count + MAX_SPARE) this.#known.clear();
    this.#count = 0;
  }
}

// Not in Node's pool: these bytes live as long as the item, and would keep 64 KiB of the pool each.
function ownCopy(bytes: Buffer, start: number, end: number): Buffer {
  const copy = Buffer.allocUnsafeSlow(end - start);
  bytes.copy(copy, 0, start, end);
  return copy;
}

function keyOf(bytes: Buffer, start: number): number {
  return (bytes.readUInt32LE(start + KEY_AT) ^ Math.imul(bytes.readUInt32LE(start + KEY_AT + 4), 31)) >>> 0;
}
