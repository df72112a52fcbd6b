import { BinaryReader } from "@bufbuild/protobuf/wire";

/** Field number of `devices` in a Pool. */
const DEVICES = 2;
const BYTES = 2;

/** A Pool's bytes, with the offset of each of its fields. */
export class PoolBytes {
  readonly bytes: Uint8Array;
  // The offset of each field's tag, and finally the total length.
  readonly #starts: Int32Array;
  /** The fields from this index up to but excluding `lastDevice` are the devices. Both are 0 if there are none. */
  readonly firstDevice: number;
  readonly lastDevice: number;

  private constructor(bytes: Uint8Array, starts: Int32Array, firstDevice: number, lastDevice: number) {
    this.bytes = bytes;
    this.#starts = starts;
    this.firstDevice = firstDevice;
    this.lastDevice = lastDevice;
  }

  /** Finds the fields. Returns undefined if the devices are not contiguous. Throws if the bytes are not a message. */
  static of(bytes: Uint8Array): PoolBytes | undefined {
    const starts: number[] = [];
    const reader = new BinaryReader(bytes);
    let first = 0;
    let last = 0;
    let isRow = true;
    while (reader.pos < bytes.length) {
      starts.push(reader.pos);
      const tag = reader.uint32();
      if (tag >>> 3 === DEVICES) {
        if (last === 0) first = starts.length - 1;
        else if (last !== starts.length - 1) isRow = false;
        last = starts.length;
      }
      skipField(reader, tag);
    }
    starts.push(bytes.length);
    return isRow ? new PoolBytes(bytes, Int32Array.from(starts), first, last) : undefined;
  }

  get size(): number {
    return this.lastDevice - this.firstDevice;
  }

  /** Returns the offsets of the field of the device at an index. */
  range(at: number): { from: number; to: number } {
    const field = this.firstDevice + at;
    return { from: this.#starts[field]!, to: this.#starts[field + 1]! };
  }

  /** Returns the bytes of the field of a device, including its tag and length. */
  device(at: number): Uint8Array {
    const { from, to } = this.range(at);
    return this.bytes.subarray(from, to);
  }

  /**
   * Returns the fields of bytes in which only some devices differ, and the range of these devices: `from` up to but
   * excluding `to`. Undefined if other fields or the number of devices differ.
   */
  next(bytes: Uint8Array): { pool: PoolBytes; from: number; to: number } | undefined {
    const { prefix, suffix } = commonEnds(this.bytes, bytes);
    const starts = this.#starts;
    const shift = bytes.length - this.bytes.length;
    // The first field that is not entirely in the prefix, and the first one that is entirely in the suffix.
    const first = upperBound(starts, prefix) - 1;
    const last = Math.max(first, lowerBound(starts, this.bytes.length - suffix));
    if (first < this.firstDevice || last > this.lastDevice) return undefined;
    const moved = starts.slice();
    const reader = new BinaryReader(bytes);
    reader.pos = starts[first]!;
    const end = starts[last]! + shift;
    let field = first;
    for (; field < last && reader.pos < end; field++) {
      moved[field] = reader.pos;
      const tag = reader.uint32();
      if (tag >>> 3 !== DEVICES) return undefined;
      skipField(reader, tag);
    }
    if (field !== last || reader.pos !== end) return undefined;
    if (shift !== 0) for (let at = last; at < moved.length; at++) moved[at]! += shift;
    const pool = new PoolBytes(bytes, moved, this.firstDevice, this.lastDevice);
    return { pool, from: first - this.firstDevice, to: last - this.firstDevice };
  }
}

// Like `reader.skip`, which allocates a view of each field's bytes.
function skipField(reader: BinaryReader, tag: number): void {
  if ((tag & 7) !== BYTES) {
    reader.skip(tag & 7, tag >>> 3);
    return;
  }
  const length = reader.uint32();
  reader.pos += length;
  if (reader.pos > reader.len) throw new RangeError("a field is longer than its message");
}

// Returns the first index whose value is greater than `value`.
function upperBound(sorted: Int32Array, value: number): number {
  return bound(sorted, (item) => item > value);
}

// Returns the first index whose value is at least `value`.
function lowerBound(sorted: Int32Array, value: number): number {
  return bound(sorted, (item) => item >= value);
}

function bound(sorted: Int32Array, isBeyond: (item: number) => boolean): number {
  let low = 0;
  let high = sorted.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (isBeyond(sorted[middle]!)) high = middle;
    else low = middle + 1;
  }
  return low;
}

/** Returns the lengths of the common prefix and suffix. Their sum is at most the shorter length. */
function commonEnds(a: Uint8Array, b: Uint8Array): { prefix: number; suffix: number } {
  const shorter = Math.min(a.length, b.length);
  const prefix = longestEqual(shorter, comparison(a, b, 0));
  const isEqualAtEnd = comparison(a, b, b.length - a.length);
  const suffix = longestEqual(shorter - prefix, (from, to) => isEqualAtEnd(a.length - to, a.length - from));
  return { prefix, suffix };
}

// Finds the longest equal length by bisection: each comparison is one call of memcmp.
function longestEqual(length: number, isEqualIn: (from: number, to: number) => boolean): number {
  let known = 0;
  let bound = length;
  while (known < bound) {
    const middle = bound - known <= 64 ? known + 1 : (known + bound) >> 1;
    if (isEqualIn(known, middle)) known = middle;
    else if (middle === known + 1) return known;
    else bound = middle;
  }
  return known;
}

// Returns whether a range of `a` equals the range of `b` that starts `shift` bytes later.
function comparison(a: Uint8Array, b: Uint8Array, shift: number): (from: number, to: number) => boolean {
  return (from, to) => {
    if (to - from === 1) return a[from] === b[from + shift];
    return Buffer.compare(a.subarray(from, to), b.subarray(from + shift, to + shift)) === 0;
  };
}
