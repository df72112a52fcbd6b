import type { BinaryReader } from "@bufbuild/protobuf/wire";
import type { Int64 } from "./model.ts";

/*
 * Reads messages from their bytes by tables of their fields, without objects in between, and names what it does not
 * know, where generated code would drop it silently.
 */

/** Collects the paths of fields that are not known, such as "capacity.17". */
export class UnknownFields {
  readonly #most: number;
  readonly #within: string[] = [];
  #found: string[] = [];

  /** @param most how many are collected */
  constructor(most = 20) {
    this.#most = most;
  }

  /** What was collected since the last call. */
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
/** By field number. `readOne` is for a list of numbers that come one by one. */
export type Fields<Into> = readonly (
  | { wireType: number; read: Read<Into>; readOne?: Read<Into> }
  | undefined
)[];

/** Wire types of fields. */
export const VARINT = 0;
export const BYTES = 2;

/** Reads every field of a message that ends at `end`; of fields in another form than theirs, none is known. */
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

/** A field of text. */
export function text<Into>(set: (into: Into, value: string) => void): Fields<Into>[number] {
  return { wireType: BYTES, read: (reader, into) => set(into, reader.string()) };
}

/** A field that is true or false. */
export function flag<Into>(set: (into: Into, value: boolean) => void): Fields<Into>[number] {
  return { wireType: VARINT, read: (reader, into) => set(into, reader.bool()) };
}

/** A field that is an integer of 64 bits. */
export function int<Into>(set: (into: Into, value: Int64) => void): Fields<Into>[number] {
  return { wireType: VARINT, read: (reader, into) => set(into, int64(reader)) };
}

/** A field that is a message. @param path its name, for fields within it that are not known */
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

// The key and the value of a map's entry, both with their bytes' length before them.
const KEY = 10;
const VALUE = 18;

/** A field that is a map by text. @param path its name, for fields within it that are not known */
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

/** The value of a map's entry, a message itself. */
export function entry<Value>(fields: Fields<Value>) {
  return (reader: BinaryReader, value: Value, unknown: UnknownFields): void =>
    readFields(reader, reader.uint32() + reader.pos, value, fields, unknown);
}

/** Reads an integer of 64 bits. */
export function int64(reader: BinaryReader): Int64 {
  // Next to all are small: four bytes hold 28 bits, and no sign.
  const start = reader.pos;
  const low = reader.uint32();
  if (reader.pos - start <= 4) return low;
  reader.pos = start;
  return toInt64(reader.int64());
}

/** The integer as a number where that is exact. */
export function toInt64(value: bigint | string): Int64 {
  const number = Number(value);
  return Number.isSafeInteger(number) ? number : BigInt(value);
}

/** The list with one more; the same list where there is one. */
export function appended<Value>(list: Value[] | undefined, value: Value): Value[] {
  if (!list) return [value];
  list.push(value);
  return list;
}

/** The record with one more; the same record where there is one. A key may be "__proto__". */
export function put<Value>(record: Record<string, Value> | undefined, key: string, value: Value) {
  if (record && key !== "__proto__") {
    record[key] = value;
    return record;
  }
  return Object.fromEntries([...Object.entries(record ?? {}), [key, value]]);
}

/** The only field of a message that is a list. */
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
/** A field that is a message with a list in it. */
export const list = <Into, Value>(
  path: string,
  fields: Fields<Value[]>,
  set: (into: Into, value: Value[]) => void,
): Fields<Into>[number] => message<Into, Value[]>(path, () => [], fields, set);

/** A message that is a list of texts. */
export const texts = listOf((reader) => reader.string(), BYTES);
