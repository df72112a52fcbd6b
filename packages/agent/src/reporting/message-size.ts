import { BinaryReader, WireType } from "@bufbuild/protobuf/wire";
import { ReportRefused } from "@nodekeeper/api/errors";

// Ten times the number of fields that are used. Two encoded bytes can take hundreds of bytes once decoded.
const MAX_PARTS = 10_000;
// Field numbers in reporterplugin.v1alpha1.
const CONTENT_OF_RESPONSE = 1;
const FIELD_OF_CONTENT = 2;

/**
 * Throws `exhausted` if a GetReportContentResponse has more than 10,000 contents and fields: decoding 4 MiB of empty
 * ones takes half a gigabyte and more than a second. Throws the reader's error if the bytes are not a message.
 */
export function checkMessageSize(message: Uint8Array): void {
  let parts = 0;
  const count = () => {
    if (++parts > MAX_PARTS) throw new ReportRefused({ limit: MAX_PARTS });
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
