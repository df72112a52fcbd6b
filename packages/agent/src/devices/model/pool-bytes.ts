import { BinaryReader } from "@bufbuild/protobuf/wire";
import { commonEnds } from "./byte-range.ts";

/** The number of the field `devices` in a Pool. */
const DEVICES = 2;
const BYTES = 2;

/** A Pool's bytes, with the place of each of its fields. */
export class PoolBytes {
  readonly bytes: Uint8Array;
  // Field by field: the offset of its tag, and at the end the length of all.
  readonly #starts: Int32Array;
  /** The fields from this one to before `lastDevice` are devices, and no others; both 0 where there is none. */
  readonly firstDevice: number;
  readonly lastDevice: number;

  private constructor(bytes: Uint8Array, starts: Int32Array, firstDevice: number, lastDevice: number) {
    this.bytes = bytes;
    this.#starts = starts;
    this.firstDevice = firstDevice;
    this.lastDevice = lastDevice;
  }

  /** Finds the fields. Throws where the bytes are no message; undefined where the devices do not lie in one row. */
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

  /** Where the field of a device starts and ends, by its place among the devices. */
  range(at: number): { from: number; to: number } {
    const field = this.firstDevice + at;
    return { from: this.#starts[field]!, to: this.#starts[field + 1]! };
  }

  /** The bytes of the field of a device, its tag and length before it. */
  device(at: number): Uint8Array {
    const { from, to } = this.range(at);
    return this.bytes.subarray(from, to);
  }

  /**
   * The same for bytes in which only some devices differ, and which: from `from` to before `to`. Undefined where more
   * than that differs, or not as many devices are there.
   */
  next(bytes: Uint8Array): { pool: PoolBytes; from: number; to: number } | undefined {
    const { prefix, suffix } = commonEnds(this.bytes, bytes);
    const starts = this.#starts;
    const shift = bytes.length - this.bytes.length;
    // The first field that is not all in the prefix, and the first one that is all in the suffix.
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

// As `reader.skip`, which makes a view of the bytes of each field.
function skipField(reader: BinaryReader, tag: number): void {
  if ((tag & 7) !== BYTES) {
    reader.skip(tag & 7, tag >>> 3);
    return;
  }
  const length = reader.uint32();
  reader.pos += length;
  if (reader.pos > reader.len) throw new RangeError("a field is longer than its message");
}

// The first place whose value is more than `value`.
function upperBound(sorted: Int32Array, value: number): number {
  return bound(sorted, (item) => item > value);
}

// The first place whose value is `value` or more.
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
