import { BinaryWriter, WireType } from "@bufbuild/protobuf/wire";
import type { TopQuestion } from "./decision.ts";
import type { ObservedPod } from "./pod-bytes.ts";

// Field numbers of the requests in proto/evictionplugin/v1alpha1; the pods are field 1 of all three.
const ACTIVE_PODS = 1;
const TOP_N = 2;
const EVICTION_SCOPE = 3;

/**
 * The candidates of one round as all plugins are offered them. They are encoded once, when the first plugin needs
 * bytes; every call sends the same ones.
 */
export class PodOffer {
  /** Sorted by UID. */
  readonly pods: readonly ObservedPod[];
  #bytes: Buffer | undefined;

  constructor(pods: readonly ObservedPod[]) {
    this.pods = pods;
  }

  /** The body of GetEvictPods and ThresholdMet, and the beginning of any GetTopEvictionPods. */
  get bytes(): Buffer {
    this.#bytes ??= encodePods(this.pods);
    return this.#bytes;
  }

  /** The pods a question offers. */
  podsFor({ candidateUids }: TopQuestion): readonly ObservedPod[] {
    if (candidateUids === null) return this.pods;
    const wanted = new Set(candidateUids);
    return this.pods.filter(({ pod }) => wanted.has(pod.uid));
  }

  /** The body of GetTopEvictionPods, in pieces to be sent one after another. */
  topRequest(question: TopQuestion): Buffer[] {
    const pods = question.candidateUids === null ? this.bytes : encodePods(this.podsFor(question));
    const rest = new BinaryWriter()
      .tag(TOP_N, WireType.Varint)
      .uint64(question.topN)
      .tag(EVICTION_SCOPE, WireType.LengthDelimited)
      .string(question.scope)
      .finish();
    return [pods, Buffer.from(rest.buffer, rest.byteOffset, rest.byteLength)];
  }
}

function encodePods(pods: readonly ObservedPod[]): Buffer {
  const headers = pods.map(({ bytes }) =>
    new BinaryWriter().tag(ACTIVE_PODS, WireType.LengthDelimited).uint32(bytes.length).finish(),
  );
  return Buffer.concat(pods.flatMap(({ bytes }, index) => [headers[index]!, bytes]));
}
