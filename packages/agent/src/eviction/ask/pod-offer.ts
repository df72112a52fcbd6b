import { BinaryWriter, WireType } from "@bufbuild/protobuf/wire";
import type { CandidateRecord, TopQuestion } from "@nodekeeper/api/decide";
import { EvictionRecord } from "@nodekeeper/core/gen/evictionplugin/v1alpha1/api.ts";
import type { EncodablePod } from "../observe/observed-pod.ts";

// Field numbers of the requests in proto/evictionplugin/v1alpha1. Field 1 of all three contains the pods.
const ACTIVE_PODS = 1;
const TOP_N = 2;
const EVICTION_SCOPE = 3;
const EVICTION_RECORDS = 4;

/** The candidates of one round, as sent to plugins. Encoded once for all plugins, on first use. */
export class PodOffer {
  /** Sorted by UID. */
  readonly pods: readonly EncodablePod[];
  #bytes: Buffer | undefined;

  constructor(pods: readonly EncodablePod[]) {
    this.pods = pods;
  }

  /** The request of GetEvictPods and ThresholdMet, and the first part of GetTopEvictionPods if it offers all pods. */
  get bytes(): Buffer {
    this.#bytes ??= encodePods(this.pods);
    return this.#bytes;
  }

  /** The size of the request, bytes; undefined if no plugin behind a socket was called. */
  get encodedBytes(): number | undefined {
    return this.#bytes?.length;
  }

  /** Returns the pods that a question offers. */
  podsFor({ candidateUids }: TopQuestion): readonly EncodablePod[] {
    if (candidateUids === null) return this.pods;
    const offered = new Set(candidateUids);
    return this.pods.filter(({ pod }) => offered.has(pod.uid));
  }

  /** Returns the request of GetTopEvictionPods, in parts to send in order. */
  topRequest(question: TopQuestion): Buffer[] {
    const pods = question.candidateUids === null ? this.bytes : encodePods(this.podsFor(question));
    const writer = new BinaryWriter()
      .tag(TOP_N, WireType.Varint)
      .uint64(question.topN)
      .tag(EVICTION_SCOPE, WireType.LengthDelimited)
      .string(question.scope);
    for (const record of question.records ?? []) {
      writer.tag(EVICTION_RECORDS, WireType.LengthDelimited).bytes(encodeRecord(record));
    }
    const rest = writer.finish();
    return [pods, Buffer.from(rest.buffer, rest.byteOffset, rest.byteLength)];
  }
}

function encodeRecord({ buckets, ...record }: CandidateRecord): Uint8Array {
  const list = buckets.map(({ time, duration, count }) => ({
    time: BigInt(time),
    duration: BigInt(duration),
    count: BigInt(count),
  }));
  return EvictionRecord.encode(EvictionRecord.fromPartial({ ...record, buckets: { list } })).finish();
}

function encodePods(pods: readonly EncodablePod[]): Buffer {
  const encoded = pods.map((pod) => pod.encoded());
  const headers = encoded.map((bytes) =>
    new BinaryWriter().tag(ACTIVE_PODS, WireType.LengthDelimited).uint32(bytes.length).finish(),
  );
  return Buffer.concat(encoded.flatMap((bytes, index) => [headers[index]!, bytes]));
}
