import { BinaryReader, WireType } from "@bufbuild/protobuf/wire";
import { NodekeeperError } from "@nodekeeper/core/lib";

// Ten times what is taken of a message. Two bytes can stand for a field, and one decoded takes hundreds.
const MOST_PARTS = 10_000;
// Their numbers in reporterplugin.v1alpha1.
const CONTENT_OF_RESPONSE = 1;
const FIELD_OF_CONTENT = 2;

/**
 * Throws `exhausted` for a GetReportContentResponse of more contents and fields than are worth decoding: 4 MiB of
 * empty ones take half a gigabyte and more than a second. Throws what the reader does for bytes that are no message.
 */
export function checkMessageSize(message: Uint8Array): void {
  let parts = 0;
  const count = () => {
    if (++parts > MOST_PARTS)
      throw new NodekeeperError("exhausted", `it has more than ${MOST_PARTS} contents and fields`);
  };
  const reader = new BinaryReader(message);
  while (reader.pos < reader.len) {
    const [number, wireType] = reader.tag();
    if (number !== CONTENT_OF_RESPONSE || wireType !== WireType.LengthDelimited) {
      reader.skip(wireType, number);
      continue;
    }
    count();
    const end = reader.uint32() + reader.pos;
    while (reader.pos < end) {
      const [member, memberType] = reader.tag();
      if (member === FIELD_OF_CONTENT) count();
      reader.skip(memberType, member);
    }
  }
}
