import type { BinaryReader } from "@bufbuild/protobuf/wire";
import type { Int64 } from "./model.ts";

/*
 * Decodes messages by tables of their fields, without intermediate objects, and reports unknown fields, which generated
 * code would silently drop.
 */

/** Collects the paths of unknown fields, such as "capacity.17". */
export class UnknownFields {
  readonly #most: number;
  readonly #within: string[] = [];
  #found: string[] = [];

  /** @param most maximum number of paths */
  constructor(most = 20) {
    this.#most = most;
  }

  /** Returns the paths collected since the last call. */
  take(): string[] {
    const found = this.#found;
    if (found.length > 0) this.#found = [];
    this.#within.length = 0;
    return found;
  }

  enter(field: string): void {
    this.#within.push(field);
  }

  leave(): void {
    this.#within.pop();
  }

  add(number: number): void {
    const path = [...this.#within, number].join(".");
    if (this.#found.length < this.#most && !this.#found.includes(path)) this.#found.push(path);
  }
}

/** Reads one field's value. */
export type Read<Into> = (reader: BinaryReader, into: Into, unknown: UnknownFields) => void;
/** By field number. `readOne` reads an item of an unpacked list of numbers. */
export type Fields<Into> = readonly (
  | { wireType: number; read: Read<Into>; readOne?: Read<Into> }
  | undefined
)[];

/** Wire types of fields. */
export const VARINT = 0;
export const BYTES = 2;

/** Reads all fields of a message that ends at `end`. A field with an unexpected wire type counts as unknown. */
export function readFields<Into>(
  reader: BinaryReader,
  end: number,
  into: Into,
  fields: Fields<Into>,
  unknown: UnknownFields,
): void {
  while (reader.pos < end) {
    const tag = reader.uint32();
    const number = tag >>> 3;
    const field = fields[number];
    const wireType = tag & 7;
    const read = field?.wireType === wireType ? field.read : wireType === VARINT && field?.readOne;
    if (read) {
      read(reader, into, unknown);
      continue;
    }
    if (number === 0) throw new RangeError("field number 0");
    unknown.add(number);
    reader.skip(wireType, number);
  }
  if (reader.pos > end) throw new RangeError("a field is longer than its message");
}

/** A string field. */
export function text<Into>(set: (into: Into, value: string) => void): Fields<Into>[number] {
  return { wireType: BYTES, read: (reader, into) => set(into, reader.string()) };
}

/** A boolean field. */
export function flag<Into>(set: (into: Into, value: boolean) => void): Fields<Into>[number] {
  return { wireType: VARINT, read: (reader, into) => set(into, reader.bool()) };
}

/** A 64-bit integer field. */
export function int<Into>(set: (into: Into, value: Int64) => void): Fields<Into>[number] {
  return { wireType: VARINT, read: (reader, into) => set(into, int64(reader)) };
}

/**
 * A message field.
 * @param path name of the field, for unknown fields within it
 */
export function message<Into, Value>(
  path: string,
  make: () => Value,
  fields: Fields<Value>,
  set: (into: Into, value: Value) => void,
): Fields<Into>[number] {
  return {
    wireType: BYTES,
    read(reader, into, unknown) {
      const end = reader.uint32() + reader.pos;
      const value = make();
      unknown.enter(path);
      readFields(reader, end, value, fields, unknown);
      unknown.leave();
      set(into, value);
    },
  };
}

// Tags of the key and the value of a map entry, both length-delimited.
const KEY = 10;
const VALUE = 18;

/**
 * A map field with string keys.
 * @param path name of the field, for unknown fields within it
 */
export function map<Into, Value>(
  path: string,
  make: () => Value,
  readValue: (reader: BinaryReader, value: Value, unknown: UnknownFields) => void,
  set: (into: Into, key: string, value: Value) => void,
): Fields<Into>[number] {
  return {
    wireType: BYTES,
    read(reader, into, unknown) {
      const end = reader.uint32() + reader.pos;
      let key = "";
      const value = make();
      unknown.enter(path);
      while (reader.pos < end) {
        const tag = reader.uint32();
        if (tag === KEY) key = reader.string();
        else if (tag === VALUE) readValue(reader, value, unknown);
        else {
          if (tag >>> 3 === 0) throw new RangeError("field number 0");
          unknown.add(tag >>> 3);
          reader.skip(tag & 7, tag >>> 3);
        }
      }
      if (reader.pos > end) throw new RangeError("an entry is longer than its map");
      unknown.leave();
      set(into, key, value);
    },
  };
}

/** The value of a map entry that is a message. */
export function entry<Value>(fields: Fields<Value>) {
  return (reader: BinaryReader, value: Value, unknown: UnknownFields): void =>
    readFields(reader, reader.uint32() + reader.pos, value, fields, unknown);
}

/** Reads a 64-bit integer. */
export function int64(reader: BinaryReader): Int64 {
  // Nearly all are small: four bytes hold 28 bits and no sign.
  const start = reader.pos;
  const low = reader.uint32();
  if (reader.pos - start <= 4) return low;
  reader.pos = start;
  return toInt64(reader.int64());
}

/** Returns the integer as a number if that is exact, otherwise as a bigint. */
export function toInt64(value: bigint | string): Int64 {
  const number = Number(value);
  return Number.isSafeInteger(number) ? number : BigInt(value);
}

/** Appends to a list. Creates it if undefined. */
export function appended<Value>(list: Value[] | undefined, value: Value): Value[] {
  if (!list) return [value];
  list.push(value);
  return list;
}

/** Adds to a record. Creates it if undefined. A key may be "__proto__". */
export function put<Value>(record: Record<string, Value> | undefined, key: string, value: Value) {
  if (record && key !== "__proto__") {
    record[key] = value;
    return record;
  }
  return Object.fromEntries([...Object.entries(record ?? {}), [key, value]]);
}

/** The fields of a message with a single list. */
export const listOf = <Value>(read: (reader: BinaryReader) => Value, wireType: number): Fields<Value[]> => [
  undefined,
  {
    wireType: BYTES,
    read(reader, into) {
      if (wireType === BYTES) {
        into.push(read(reader));
        return;
      }
      const end = reader.uint32() + reader.pos;
      while (reader.pos < end) into.push(read(reader));
    },
    ...(wireType === VARINT && { readOne: (reader, into) => void into.push(read(reader)) }),
  },
];
/** A message field that wraps a list. */
export const list = <Into, Value>(
  path: string,
  fields: Fields<Value[]>,
  set: (into: Into, value: Value[]) => void,
): Fields<Into>[number] => message<Into, Value[]>(path, () => [], fields, set);

/** The fields of a message that is a list of strings. */
export const texts = listOf((reader) => reader.string(), BYTES);
