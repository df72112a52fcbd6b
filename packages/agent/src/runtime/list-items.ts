import { NodekeeperError } from "@nodekeeper/core/lib";
import { WireReader } from "./wire-reader.ts";

const PREFIX_BYTES = 5;
const LONGEST_VARINT = 10;
// Annotations of a pod may have 256 KiB, and CRI has them in several places.
const LONGEST_ITEM = 4 * 1024 * 1024;
const ITEM_TAG = 10;

export interface ListItemsOptions<Item> {
  /** The longest message, bytes. */
  maxBytes: number;
  maxItems: number;
  /** Reads one item, from where the reader is up to `end`. */
  read: (reader: WireReader, end: number) => Item;
}

/**
 * Takes the body of a list's answer as it comes, gRPC's framing included, and reads each item where it lies: the
 * answer, megabytes of it every second, is never put together. In all list messages the items are field 1.
 * Throws RangeError where it is no such message, `exhausted` where it is too large.
 */
export class ListItems<Item> {
  readonly items: Item[] = [];
  readonly #options: ListItemsOptions<Item>;
  // What came and is less than a whole prefix or field.
  #rest: Buffer[] = [];
  #restBytes = 0;
  // How many bytes are needed to go on.
  #needed = PREFIX_BYTES;
  // Of the message under way.
  #left = 0;

  constructor(options: ListItemsOptions<Item>) {
    this.#options = options;
  }

  push(chunk: Buffer): void {
    this.#rest.push(chunk);
    this.#restBytes += chunk.length;
    if (this.#restBytes < this.#needed) return;
    const bytes = this.#rest.length === 1 ? chunk : Buffer.concat(this.#rest, this.#restBytes);
    const taken = this.#take(bytes);
    this.#rest = taken < bytes.length ? [bytes.subarray(taken)] : [];
    this.#restBytes = bytes.length - taken;
  }

  /** The answer has ended. */
  end(): Item[] {
    if (this.#restBytes > 0 || this.#left > 0) throw new RangeError("the message breaks off");
    return this.items;
  }

  #take(bytes: Buffer): number {
    const reader = new WireReader(bytes);
    let at = 0;
    while (at < bytes.length) {
      const end = this.#left === 0 ? this.#prefix(bytes, at) : this.#field(reader, bytes, at);
      if (end === undefined) break;
      at = end;
    }
    if (at === bytes.length) this.#needed = this.#left === 0 ? PREFIX_BYTES : 1;
    return at;
  }

  #prefix(bytes: Buffer, at: number): number | undefined {
    if (bytes.length - at < PREFIX_BYTES) {
      this.#needed = PREFIX_BYTES;
      return undefined;
    }
    if (bytes[at] !== 0) throw new RangeError("the message is compressed");
    const length = bytes.readUInt32BE(at + 1);
    const { maxBytes } = this.#options;
    if (length > maxBytes)
      throw tooLarge(
        `a message of ${length} bytes is over the limit of size (runtime.maxMessageSize is ${maxBytes} bytes)`,
      );
    this.#left = length;
    return at + PREFIX_BYTES;
  }

  // Undefined where the field is not all here.
  #field(reader: WireReader, bytes: Buffer, at: number): number | undefined {
    const here = Math.min(bytes.length - at, this.#left);
    const isAll = here === this.#left;
    if (!isAll && here < 2 * LONGEST_VARINT) {
      // Tag and length may be cut: more is on its way.
      this.#needed = bytes.length - at + 1;
      return undefined;
    }
    reader.seek(at);
    const tag = reader.tag(at + here);
    const start = reader.position;
    const end = reader.endOf(tag);
    const size = end - at;
    if (size > this.#left) throw new RangeError("a field reaches over the end of its message");
    if (size > LONGEST_ITEM) throw tooLarge(`an item of ${size} bytes`);
    if (end > bytes.length) {
      this.#needed = size;
      return undefined;
    }
    if (tag === ITEM_TAG) {
      reader.seek(start);
      reader.enter();
      this.items.push(this.#options.read(reader, end));
      if (this.items.length > this.#options.maxItems)
        throw tooLarge(`more than ${this.#options.maxItems} items`);
    }
    this.#left -= size;
    return end;
  }
}

function tooLarge(what: string): NodekeeperError {
  return new NodekeeperError("exhausted", what);
}
