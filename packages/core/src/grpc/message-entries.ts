import { BinaryReader, WireType } from "@bufbuild/protobuf/wire";
import { messageOf, NodekeeperError } from "../lib/index.ts";

/** Repeated fields by number, and the repeated fields within each of their entries. */
export interface RepeatedFields {
  readonly [field: number]: RepeatedFields;
}

/** A list of numbers. If it is packed, each of its bytes counts as an entry: a number has at least one. */
export const numbers: RepeatedFields = {};

/** The repeated fields of a message that are counted before it is decoded. See `checkEntries`. */
export interface MessageBounds {
  repeated: RepeatedFields;
  most: number;
  what: string;
}

/** Maximum number of fields at the inspected levels. Far above what any message needs; takes about 10 ms to read. */
const MOST_FIELDS = 300_000;

/**
 * Counts the entries of repeated fields in an encoded message before it is decoded. Two encoded bytes can become an
 * entry of hundreds of bytes, and decoding 4 MiB of them blocks the event loop for seconds. Throws `exhausted` if there
 * are more than `most` entries at all levels together, or more than 300,000 fields of any kind. Throws `invalid` if the
 * bytes are not a message.
 * @param what name of the entries in messages, such as "devices"
 */
export function checkEntries(
  message: Uint8Array,
  repeated: RepeatedFields,
  most: number,
  what: string,
): void {
  let entries = 0;
  let all = 0;
  const reader = new BinaryReader(message);
  const count = (end: number, fields: RepeatedFields) => {
    while (reader.pos < end) {
      if (++all > MOST_FIELDS)
        throw new NodekeeperError("exhausted", `the message has more than ${MOST_FIELDS} fields`);
      const [number, wireType] = reader.tag();
      const inner = wireType === WireType.LengthDelimited ? fields[number] : undefined;
      if (!inner) {
        reader.skip(wireType, number);
        continue;
      }
      const length = reader.uint32();
      entries += inner === numbers ? length : 1;
      if (entries > most) throw new NodekeeperError("exhausted", `the message has more than ${most} ${what}`);
      const entryEnd = reader.pos + length;
      if (entryEnd > end) throw new RangeError("an entry is longer than its message");
      // Entries without repeated fields, such as strings, are not inspected.
      if (Object.keys(inner).length > 0) count(entryEnd, inner);
      reader.pos = entryEnd;
    }
  };
  decoding(() => count(message.length, repeated));
}

/** Decodes a message. Throws as `checkEntries` does, also if only the decoder finds it invalid. */
export function decodeMessage<Message>(
  decoder: { decode(bytes: Uint8Array): Message },
  bytes: Uint8Array,
  { repeated, most, what }: MessageBounds,
): Message {
  checkEntries(bytes, repeated, most, what);
  return decoding(() => decoder.decode(bytes));
}

function decoding<Result>(work: () => Result): Result {
  try {
    return work();
  } catch (error) {
    if (error instanceof NodekeeperError) throw error;
    throw new NodekeeperError("invalid", `the message can't be decoded: ${messageOf(error)}`, {
      cause: error,
    });
  }
}
