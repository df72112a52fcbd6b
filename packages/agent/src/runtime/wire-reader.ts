/**
 * Reads fields of the protobuf wire format, strictly: what breaks off or is no field throws, where a lenient decoder
 * would take it for the end of a shorter list. Bytes that nobody asks for are stepped over without being touched.
 */
export class WireReader {
  readonly #bytes: Buffer;
  readonly #word = new DataView(new ArrayBuffer(8));
  #position = 0;

  constructor(bytes: Uint8Array) {
    this.#bytes = Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
  }

  get length(): number {
    return this.#bytes.length;
  }

  /** What is read. */
  get bytes(): Buffer {
    return this.#bytes;
  }

  /** Where the reader is. */
  get position(): number {
    return this.#position;
  }

  /** Goes on reading at another place. */
  seek(position: number): void {
    this.#position = position;
  }

  /** Where the field after this tag ends, without a look at whether all of it is here. */
  endOf(tag: number): number {
    switch (tag & 7) {
      case 0:
        this.uint32();
        return this.#position;
      case 1:
        return this.#position + 8;
      case 2:
        return this.uint32() + this.#position;
      case 5:
        return this.#position + 4;
      default:
        throw new RangeError(`a field has the wire type ${tag & 7}`);
    }
  }

  /** The tag of the next field, its number times 8 plus its wire type; 0 at the end of the message. */
  tag(end: number): number {
    if (this.#position >= end) {
      if (this.#position > end) throw new RangeError("a field reaches over the end of its message");
      return 0;
    }
    const tag = this.uint32();
    if (tag < 8) throw new RangeError("a field has the number 0");
    return tag;
  }

  /** Steps into a field that is a message; gives its end, for `tag`. */
  enter(): number {
    const length = this.uint32();
    const end = this.#position + length;
    if (end > this.#bytes.length) throw new RangeError("the message breaks off");
    return end;
  }

  string(): string {
    const end = this.enter();
    const text = this.#bytes.toString("utf8", this.#position, end);
    this.#position = end;
    return text;
  }

  /** A varint's lowest 32 bits. */
  uint32(): number {
    const bytes = this.#bytes;
    let value = 0;
    for (let shift = 0; shift < 70; shift += 7) {
      const byte = bytes[this.#position++];
      if (byte === undefined) throw new RangeError("the message breaks off");
      if (shift < 32) value |= (byte & 0x7f) << shift;
      if (byte < 0x80) return value >>> 0;
    }
    throw new RangeError("a number has more than 64 bits");
  }

  int64(): bigint {
    const bytes = this.#bytes;
    let low = 0;
    let high = 0;
    for (let shift = 0; shift < 70; shift += 7) {
      const byte = bytes[this.#position++];
      if (byte === undefined) throw new RangeError("the message breaks off");
      const bits = byte & 0x7f;
      if (shift < 32) low |= bits << shift;
      if (shift > 28) high |= bits << (shift - 32);
      else if (shift === 28) high |= bits >>> 4;
      if (byte < 0x80) {
        this.#word.setInt32(0, high);
        this.#word.setInt32(4, low);
        return this.#word.getBigInt64(0);
      }
    }
    throw new RangeError("a number has more than 64 bits");
  }

  /** Steps over a field that nobody asked for. */
  skip(tag: number): void {
    const end = this.endOf(tag);
    if ((tag & 7) === 2 && end > this.#bytes.length) throw new RangeError("the message breaks off");
    this.#position = end;
  }
}
