import { BinaryReader, WireType } from "@bufbuild/protobuf/wire";
import { Pod } from "@nodekeeper/core/gen/k8s/core/v1/api.ts";

// The magic bytes: "k8s" and a zero byte. A runtime.Unknown follows; its field 2 is the object.
const MAGIC_BYTES = 4;
const RAW_OBJECT = 2;

/** Returns the pod in an API server's protobuf response to a GET (`application/vnd.kubernetes.protobuf`). */
export function podOfEnvelope(envelope: Uint8Array): Pod {
  const reader = new BinaryReader(envelope.subarray(MAGIC_BYTES));
  while (reader.pos < reader.len) {
    const [field, type] = reader.tag();
    if (field === RAW_OBJECT && type === WireType.LengthDelimited) return Pod.decode(reader.bytes());
    reader.skip(type, field);
  }
  throw new Error("the envelope holds no object");
}
