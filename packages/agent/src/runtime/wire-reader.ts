/**
 * Strict reader of the protobuf wire format. Truncated data and invalid fields throw; a lenient decoder would
 * return a shorter list. Fields that are not requested are skipped without decoding.
 */
export class WireReader {
  #bytes: Buffer;
  readonly #word = new DataView(new ArrayBuffer(8));
  #position = 0;

  constructor(bytes: Uint8Array) {
    this.#bytes = Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
  }

  /** Starts again at the beginning of another buffer. */
  start(bytes: Buffer): void {
    this.#bytes = bytes;
    this.#position = 0;
  }

  get bytes(): Buffer {
    return this.#bytes;
  }

  get position(): number {
    return this.#position;
  }

  /** Continues at another position. */
  seek(position: number): void {
    this.#position = position;
  }

  /** Returns the end of the field after this tag. It may be beyond the buffer. */
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

  /**
   * Reads the tag of the next field (field number times 8 plus wire type). Returns 0 at the end of the
   * message.
   */
  tag(end: number): number {
    if (this.#position >= end) {
      if (this.#position > end) throw new RangeError("a field exceeds the end of its message");
      return 0;
    }
    const tag = this.uint32();
    if (tag < 8) throw new RangeError("a field has number 0");
    return tag;
  }

  /** Enters a field that contains a message. Returns its end, for `tag`. */
  enter(): number {
    const length = this.uint32();
    const end = this.#position + length;
    if (end > this.#bytes.length) throw new RangeError("the message is truncated");
    return end;
  }

  string(): string {
    const end = this.enter();
    const text = this.#bytes.toString("utf8", this.#position, end);
    this.#position = end;
    return text;
  }

  /** Reads the lowest 32 bits of a varint. */
  uint32(): number {
    const bytes = this.#bytes;
    let value = 0;
    for (let shift = 0; shift < 70; shift += 7) {
      const byte = bytes[this.#position++];
      if (byte === undefined) throw new RangeError("the message is truncated");
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
      if (byte === undefined) throw new RangeError("the message is truncated");
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

  /** Skips a field. */
  skip(tag: number): void {
    const end = this.endOf(tag);
    if ((tag & 7) === 2 && end > this.#bytes.length) throw new RangeError("the message is truncated");
    this.#position = end;
  }
}
