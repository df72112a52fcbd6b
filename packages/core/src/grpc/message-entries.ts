import { BinaryReader, WireType } from "@bufbuild/protobuf/wire";
import { NodekeeperError } from "../lib/index.ts";

/** Repeated fields by number, and what is repeated within each of their entries. */
export interface RepeatedFields {
  readonly [field: number]: RepeatedFields;
}

/**
 * Counts the entries of repeated fields in an encoded message before it is decoded: two bytes can encode an entry that
 * takes hundreds of bytes decoded, and 4 MiB of them hold the only thread for seconds.
 * Throws `exhausted` for more than `most` entries, at all levels together; `invalid` for bytes that are no message.
 * @param what names the entries, such as "devices"
 */
export function checkEntries(
  message: Uint8Array,
  repeated: RepeatedFields,
  most: number,
  what: string,
): void {
  let entries = 0;
  const reader = new BinaryReader(message);
  const count = (end: number, fields: RepeatedFields) => {
    while (reader.pos < end) {
      const [number, wireType] = reader.tag();
      const inner = wireType === WireType.LengthDelimited ? fields[number] : undefined;
      if (!inner) {
        reader.skip(wireType, number);
        continue;
      }
      if (++entries > most)
        throw new NodekeeperError("exhausted", `the message has more than ${most} ${what}`);
      const length = reader.uint32();
      const entryEnd = reader.pos + length;
      if (entryEnd > end) throw new RangeError("an entry is longer than its message");
      // A text is no message to look into.
      if (Object.keys(inner).length > 0) count(entryEnd, inner);
      reader.pos = entryEnd;
    }
  };
  try {
    count(message.length, repeated);
  } catch (error) {
    if (error instanceof NodekeeperError) throw error;
    throw new NodekeeperError("invalid", "the message can't be decoded", { cause: error });
  }
}
