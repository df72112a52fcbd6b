import { BinaryReader, WireType } from "@bufbuild/protobuf/wire";
import { Pod } from "../gen/k8s/core/v1/api.ts";
import type { KubeObject } from "../kube/index.ts";
import { NodekeeperError } from "../lib/index.ts";
import { podMessageOf } from "./pod-message.ts";
import type { EvictionPod } from "./pods.ts";
import { readPod } from "./read-pod.ts";

/** A pod in both shapes a round needs: what deciding reads, and the bytes all plugins get. */
export interface ObservedPod {
  pod: EvictionPod;
  /** An encoded core v1 Pod. */
  bytes: Uint8Array;
}

/** A pod of the API server's JSON; its bytes hold what the lean message declares. Throws `invalid` for a pod without UID or name. */
export function observeJson(object: KubeObject): ObservedPod {
  const message = podMessageOf(object);
  return { pod: readPod(message), bytes: Pod.encode(message).finish() };
}

/**
 * A pod of an API server's protobuf answer (`application/vnd.kubernetes.protobuf`), in its envelope as a GET or a watch
 * event has it. Its own bytes go to the plugins as they are, so nothing is lost, whatever newer fields it has. Throws
 * `invalid` for anything that is no such pod.
 */
export function observeEnvelope(envelope: Uint8Array): ObservedPod {
  return observeBytes(unwrap(envelope));
}

/** The same for an encoded core v1 Pod without an envelope, as a PodList holds them. */
export function observeBytes(bytes: Uint8Array): ObservedPod {
  try {
    return { pod: readPod(Pod.decode(bytes)), bytes };
  } catch (thrown) {
    if (thrown instanceof NodekeeperError) throw thrown;
    throw new NodekeeperError("invalid", "the bytes are no Pod", { cause: thrown });
  }
}

// "k8s" and a zero byte, then a runtime.Unknown, whose field 2 is the object.
const magic = [0x6b, 0x38, 0x73, 0x00];
const RAW_OBJECT = 2;

function unwrap(envelope: Uint8Array): Uint8Array {
  if (!magic.every((byte, index) => envelope[index] === byte)) {
    throw new NodekeeperError("invalid", "the answer does not begin as Kubernetes' protobuf does");
  }
  try {
    const reader = new BinaryReader(envelope.subarray(magic.length));
    while (reader.pos < reader.len) {
      const [field, type] = reader.tag();
      if (field === RAW_OBJECT && type === WireType.LengthDelimited) return reader.bytes();
      reader.skip(type, field);
    }
  } catch (thrown) {
    throw new NodekeeperError("invalid", "the answer's envelope can't be read", { cause: thrown });
  }
  throw new NodekeeperError("invalid", "the answer's envelope holds no object");
}
