import type { WireReader } from "./wire-reader.ts";

type Read<Item> = (reader: WireReader, end: number) => Item;

// The beginning of an ID, after its tag and length: IDs are random.
const KEY_AT = 2;
const KEY_END = 10;
const MOST_SPARE = 64;

/**
 * Reads items of lists that hardly ever change: an item whose bytes are those it had before is the object it was
 * before, and nothing is made for it. Labels and what else comes after the fields that count may differ: runtimes
 * write maps in any order.
 */
export class KnownItems<Item> {
  readonly #read: Read<Item>;
  readonly #lastTag: number;
  readonly #known = new Map<number, { bytes: Buffer; item: Item }>();
  #count = 0;

  /** @param lastTag the highest tag of a field that counts */
  constructor(read: Read<Item>, lastTag: number) {
    this.#read = read;
    this.#lastTag = lastTag;
  }

  /** The item from where the reader is up to `end`. Throws RangeError where the bytes are none. */
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
    this.#known.set(key, { bytes: Buffer.from(bytes.subarray(start, counts)), item });
    return item;
  }

  /** A list of everything was read: what is gone is forgotten once it is as much as what is there. */
  listed(): void {
    if (this.#known.size > 2 * this.#count + MOST_SPARE) this.#known.clear();
    this.#count = 0;
  }
}

function keyOf(bytes: Buffer, start: number): number {
  return (bytes.readUInt32LE(start + KEY_AT) ^ Math.imul(bytes.readUInt32LE(start + KEY_AT + 4), 31)) >>> 0;
}
