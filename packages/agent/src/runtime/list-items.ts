import { RuntimeAnswerTooLarge } from "@nodekeeper/api/errors";
import type { NodekeeperError } from "@nodekeeper/core/lib";
import { WireReader } from "./wire-reader.ts";

const PREFIX_BYTES = 5;
const MAX_VARINT_BYTES = 10;
// A pod's annotations may have 256 KiB, and a CRI message contains them several times.
const MAX_ITEM_BYTES = 4 * 1024 * 1024;
const ITEM_TAG = 10;

export interface ListItemsOptions<Item> {
  /** Maximum size of the message in bytes. */
  maxBytes: number;
  maxItems: number;
  /** Decodes one item from the reader's position to `end`. */
  read: (reader: WireReader, end: number) => Item;
}

/**
 * Parses the body of a list response as it arrives, including gRPC framing, so that the whole response
 * (megabytes every second) is never in memory. The items of all list messages are field 1. Throws RangeError
 * if the message is invalid, and `exhausted` if it is too large.
 */
export class ListItems<Item> {
  readonly items: Item[] = [];
  readonly #options: ListItemsOptions<Item>;
  // Received bytes of an incomplete prefix or field.
  #rest: Buffer[] = [];
  #restBytes = 0;
  // Number of bytes needed to continue.
  #needed = PREFIX_BYTES;
  // Number of bytes left in the current message.
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

  /** Called at the end of the response. Returns the items. Throws RangeError if the message is truncated. */
  end(): Item[] {
    if (this.#restBytes > 0 || this.#left > 0) throw new RangeError("the message is truncated");
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
        `a message of ${length} bytes exceeds the size limit (runtime.maxMessageSize is ${maxBytes} bytes)`,
      );
    this.#left = length;
    return at + PREFIX_BYTES;
  }

  // Returns the end of the field. Undefined if the field is incomplete.
  #field(reader: WireReader, bytes: Buffer, at: number): number | undefined {
    const here = Math.min(bytes.length - at, this.#left);
    const isAll = here === this.#left;
    if (!isAll && here < 2 * MAX_VARINT_BYTES) {
      // Tag and length may be incomplete until more data arrives.
      this.#needed = bytes.length - at + 1;
      return undefined;
    }
    reader.seek(at);
    const tag = reader.tag(at + here);
    const start = reader.position;
    const end = reader.endOf(tag);
    const size = end - at;
    if (size > this.#left) throw new RangeError("a field exceeds the end of its message");
    if (size > MAX_ITEM_BYTES) throw tooLarge(`an item of ${size} bytes`);
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
  return new RuntimeAnswerTooLarge({ problem: what });
}
