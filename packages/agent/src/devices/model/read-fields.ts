import { BinaryReader } from "@bufbuild/protobuf/wire";
import type { Int64 } from "./model.ts";

/*
 * Decodes messages by tables of their fields, without intermediate objects, and reports unknown fields, which generated
 * code would silently drop.
 */

const MOST_UNKNOWN = 20;

/** Collects the paths of unknown fields, such as "capacity.17"; at most 20. */
class UnknownFields {
  readonly #within: string[] = [];
  #found: string[] = [];

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
    if (this.#found.length < MOST_UNKNOWN && !this.#found.includes(path)) this.#found.push(path);
  }
}

/** Reads fields and collects the unknown ones. */
export class FieldReader extends BinaryReader {
  readonly unknown = new UnknownFields();
}

/** Reads one field's value. */
export type Read<Into> = (reader: FieldReader, into: Into) => void;
/** By field number. `readOne` reads an item of an unpacked list of numbers. */
export type Fields<Into> = readonly (
  | { wireType: number; read: Read<Into>; readOne?: Read<Into> }
  | undefined
)[];

/** Wire types of fields. */
export const VARINT = 0;
export const BYTES = 2;

/** Reads all fields of a message that ends at `end`. A field with an unexpected wire type counts as unknown. */
export function readFields<Into>(reader: FieldReader, end: number, into: Into, fields: Fields<Into>): void {
  while (reader.pos < end) {
    const tag = reader.uint32();
    const number = tag >>> 3;
    const field = fields[number];
    const wireType = tag & 7;
    const read = field?.wireType === wireType ? field.read : wireType === VARINT && field?.readOne;
    if (read) {
      read(reader, into);
      continue;
    }
    if (number === 0) throw new RangeError("field number 0");
    reader.unknown.add(number);
    reader.skip(wireType, number);
  }
  if (reader.pos > end) throw new RangeError("a field is longer than its message");
}

type Field<Into> = Fields<Into>[number];
/** A field whose value becomes the member `Key`. */
type Member<Key extends string, Value> = Field<{ [K in Key]?: Value }>;

/** A string field. */
export function text<Key extends string>(key: Key): Member<Key, string> {
  return {
    wireType: BYTES,
    read(reader, into: Record<string, string | undefined>) {
      into[key] = reader.string();
    },
  };
}

/** A string field whose empty value means that it is absent. */
export function optionalText<Key extends string>(key: Key): Member<Key, string> {
  return {
    wireType: BYTES,
    read(reader, into: Record<string, string | undefined>) {
      const value = reader.string();
      if (value !== "") into[key] = value;
    },
  };
}

/** A repeated string field. */
export function texts<Key extends string>(key: Key): Member<Key, string[]> {
  return {
    wireType: BYTES,
    read(reader, into: Record<string, string[] | undefined>) {
      into[key] = appended(into[key], reader.string());
    },
  };
}

/** A boolean field that is absent unless it is true. */
export function flag<Key extends string>(key: Key): Member<Key, boolean> {
  return {
    wireType: VARINT,
    read(reader, into: Record<string, boolean | undefined>) {
      if (reader.bool()) into[key] = true;
    },
  };
}

/** A message field. */
export function message<Key extends string, Value>(
  key: Key,
  make: () => Value,
  fields: Fields<Value>,
): Member<Key, Value> {
  return {
    wireType: BYTES,
    read(reader, into: Record<string, Value | undefined>) {
      into[key] = messageWithin(reader, key, make(), fields);
    },
  };
}

/** A repeated message field. */
export function messages<Key extends string, Value>(
  key: Key,
  make: () => Value,
  fields: Fields<Value>,
): Member<Key, Value[]> {
  return {
    wireType: BYTES,
    read(reader, into: Record<string, Value[] | undefined>) {
      into[key] = appended(into[key], messageWithin(reader, key, make(), fields));
    },
  };
}

function messageWithin<Value>(reader: FieldReader, path: string, value: Value, fields: Fields<Value>): Value {
  const end = reader.uint32() + reader.pos;
  reader.unknown.enter(path);
  readFields(reader, end, value, fields);
  reader.unknown.leave();
  return value;
}

// Tags of the key and the value of a map entry, both length-delimited.
const KEY = 10;
const VALUE = 18;

/** A map field with string keys. */
export function map<Key extends string, Value>(
  path: Key,
  make: () => Value,
  readValue: Read<Value>,
): Member<Key, Record<string, Value>> {
  return {
    wireType: BYTES,
    read(reader, into: Record<string, Record<string, Value> | undefined>) {
      const end = reader.uint32() + reader.pos;
      let key = "";
      const value = make();
      reader.unknown.enter(path);
      while (reader.pos < end) {
        const tag = reader.uint32();
        if (tag === KEY) key = reader.string();
        else if (tag === VALUE) readValue(reader, value);
        else {
          if (tag >>> 3 === 0) throw new RangeError("field number 0");
          reader.unknown.add(tag >>> 3);
          reader.skip(tag & 7, tag >>> 3);
        }
      }
      if (reader.pos > end) throw new RangeError("an entry is longer than its map");
      reader.unknown.leave();
      into[path] = put(into[path], key, value);
    },
  };
}

/** The value of a map entry that is a message. */
export function entry<Value>(fields: Fields<Value>): Read<Value> {
  return (reader, value) => readFields(reader, reader.uint32() + reader.pos, value, fields);
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

/** A message field that wraps a list of strings, or of numbers of one wire type. */
export function list<Key extends string, Value>(
  key: Key,
  read: (reader: FieldReader) => Value,
  wireType: number,
): Member<Key, Value[]> {
  const readOne: Read<Value[]> = (reader, into) => void into.push(read(reader));
  const readPacked: Read<Value[]> = (reader, into) => {
    const end = reader.uint32() + reader.pos;
    while (reader.pos < end) into.push(read(reader));
  };
  const items =
    wireType === BYTES ? { wireType, read: readOne } : { wireType: BYTES, read: readPacked, readOne };
  return message(key, (): Value[] => [], [undefined, items]);
}
