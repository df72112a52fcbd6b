import { RuntimeAnswerTooLarge } from "@nodekeeper/api/errors";
import type { NodekeeperError } from "@nodekeeper/core/lib";
import { WireReader } from "./wire-reader.ts";

const PREFIX_BYTES = 5;
// A tag and a length.
const MAX_FIELD_HEADER_BYTES = 20;
// A pod's annotations may have 256 KiB, and a CRI message contains them several times.
const MAX_ITEM_BYTES = 4 * 1024 * 1024;
const ITEM_TAG = 10;
// More than most items. Below the threshold from which glibc maps each buffer separately; see `launch.ts`.
const PART_BYTES = 8 * 1024;

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
  readonly #reader = new WireReader(Buffer.alloc(0));
  // Received bytes of a prefix or field that continues in the next chunk. The buffer is reused.
  #part = Buffer.alloc(0);
  #partBytes = 0;
  // Number of bytes of that prefix or field needed to continue.
  #needed = PREFIX_BYTES;
  // Number of bytes left in the current message.
  #left = 0;

  constructor(options: ListItemsOptions<Item>) {
    this.#options = options;
  }

  push(chunk: Buffer): void {
    let at = 0;
    while (this.#partBytes > 0 && at < chunk.length) at += this.#complete(chunk, at);
    if (at < chunk.length) this.#keep(chunk, this.#take(chunk, at));
  }

  /** Called at the end of the response. Returns the items. Throws RangeError if the message is truncated. */
  end(): Item[] {
    if (this.#partBytes > 0 || this.#left > 0) throw new RangeError("the message is truncated");
    return this.items;
  }

  // Completes the incomplete prefix or field with bytes of the chunk, so that the rest of the chunk is decoded without
  // a copy. Returns the number of bytes added.
  #complete(chunk: Buffer, at: number): number {
    const added = Math.min(this.#needed - this.#partBytes, chunk.length - at);
    this.#keep(chunk, at, at + added);
    if (this.#partBytes < this.#needed) return added;
    const taken = this.#take(this.#part.subarray(0, this.#partBytes), 0);
    this.#part.copyWithin(0, taken, this.#partBytes);
    this.#partBytes -= taken;
    return added;
  }

  #keep(chunk: Buffer, start: number, end = chunk.length): void {
    if (start === end) return;
    const bytes = this.#partBytes + end - start;
    if (bytes > this.#part.length) {
      const larger = Buffer.allocUnsafeSlow(Math.max(bytes, this.#needed, PART_BYTES));
      this.#part.copy(larger, 0, 0, this.#partBytes);
      this.#part = larger;
    }
    chunk.copy(this.#part, this.#partBytes, start, end);
    this.#partBytes = bytes;
  }

  // Decodes the complete prefixes and fields. Returns the end of the last one. If bytes remain after it, `#needed` is
  // set to the number of bytes needed to decode the next prefix or field.
  #take(bytes: Buffer, start: number): number {
    this.#reader.start(bytes);
    let at = start;
    while (at < bytes.length) {
      const end = this.#left === 0 ? this.#prefix(bytes, at) : this.#field(bytes, at);
      if (end === undefined) break;
      at = end;
    }
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
  #field(bytes: Buffer, at: number): number | undefined {
    const reader = this.#reader;
    const here = Math.min(bytes.length - at, this.#left);
    const isAll = here === this.#left;
    if (!isAll && here < MAX_FIELD_HEADER_BYTES) {
      // Tag and length may be incomplete.
      this.#needed = Math.min(this.#left, MAX_FIELD_HEADER_BYTES);
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
