import { BinaryWriter } from "@bufbuild/protobuf/wire";
import {
  PodLifecycleDefinition,
  type PodStatus,
  Snapshot_Why,
  WatchResponse,
} from "@nodekeeper/core/gen/nodekeeper/lifecycle/v1alpha1/api.ts";
import type { Clock } from "@nodekeeper/core/lib";
import {
  formatCursor,
  type LogItem,
  type LogPosition,
  type PodCacheEntry,
  type PodStatusReader,
} from "../lifecycle/index.ts";
import { eventMessage, podMessage, podStatusMessage } from "./lifecycle-messages.ts";

type EventItem = Extract<LogItem, { kind: "event" }>;
type SnapshotItem = Extract<LogItem, { kind: "snapshot" }>;

/** An encoded response of Watch. */
export type WatchBytes = Uint8Array;

/** A response that can be part of a batch. */
export interface WatchAnswer {
  /** The log position after this response. */
  readonly position: LogPosition;
  readonly bytes: WatchBytes;
}

const { methods } = PodLifecycleDefinition;

/** The service definition, with Watch responses already encoded. */
export const lifecycleDefinition = {
  ...PodLifecycleDefinition,
  methods: {
    ...methods,
    watch: {
      ...methods.watch,
      responseType: {
        encode: (bytes: WatchBytes) => ({ finish: () => bytes }),
        decode: (bytes: Uint8Array): WatchBytes => bytes,
      },
    },
  },
} as const;

export interface WatchAnswersOptions {
  statuses: Pick<PodStatusReader, "get" | "version">;
  clock: Clock;
}

interface EncodedEvent extends WatchAnswer {
  /** The status included in the event. */
  readonly entry: PodCacheEntry | undefined;
}

// The maximum batch size, so that consumers that read concurrently share batches.
const MOST_ENCODED = 256;
// Events with the status of a pod with many containers take tens of kilobytes each. A batch ends at this size.
const MOST_BATCH_BYTES = 1024 * 1024;

// Tags of the fields of WatchResponse and Batch: field number times 8, plus wire type 2.
const CURSOR = 10;
const BATCH = 42;
const ANSWERS = 10;

/** Encodes Watch responses: each event, batch and snapshot once for all subscribers that read concurrently. */
export class WatchAnswers {
  readonly #options: WatchAnswersOptions;
  readonly #plain: (EncodedEvent | undefined)[] = [];
  readonly #withStatus: (EncodedEvent | undefined)[] = [];
  #batch: { answers: readonly WatchAnswer[]; bytes: WatchBytes } | undefined;
  #snapshot: { key: string; answer: WatchAnswer } | undefined;

  constructor(options: WatchAnswersOptions) {
    this.#options = options;
  }

  /** Maximum number of events in a batch. */
  readonly mostInBatch = MOST_ENCODED;

  event({ event, position }: EventItem, withStatus: boolean): WatchAnswer {
    const encoded = withStatus ? this.#withStatus : this.#plain;
    const entry = withStatus ? this.#entry(event.pod.uid) : undefined;
    const slot = position.sequence % MOST_ENCODED;
    const known = encoded[slot];
    const { log, sequence } = known?.position ?? {};
    if (known && sequence === position.sequence && log === position.log && known.entry === entry)
      return known;
    const status = entry && this.#statusMessage(entry);
    const answer = { ...encode(position, { event: eventMessage(event, status) }), entry };
    encoded[slot] = answer;
    return answer;
  }

  /** @param isWhole whether the snapshot has all pods; one with a selector is encoded for one subscriber */
  snapshot(
    { position, why, missed, pods }: SnapshotItem,
    withStatus: boolean,
    isWhole: boolean,
  ): WatchAnswer {
    const { version } = this.#options.statuses;
    const key = `${formatCursor(position)} ${version} ${withStatus} ${why} ${missed}`;
    if (isWhole && this.#snapshot?.key === key) return this.#snapshot.answer;
    const messages = pods.map((pod) => podMessage(pod, withStatus ? this.status(pod.uid) : undefined));
    const answer = encode(position, {
      snapshot: {
        why: why === "begin" ? Snapshot_Why.BEGIN : Snapshot_Why.FELL_OFF,
        missed: missed === undefined ? undefined : BigInt(missed),
        pods: messages,
      },
    });
    if (isWhole) this.#snapshot = { key, answer };
    return answer;
  }

  bookmark(position: LogPosition): WatchAnswer {
    return encode(position, { bookmark: {} });
  }

  /** Yields the responses in order, in batches of about 1 MiB. A single response is not batched. */
  *batches(answers: readonly WatchAnswer[]): Generator<WatchBytes> {
    let batch: WatchAnswer[] = [];
    let size = 0;
    for (const answer of answers) {
      batch.push(answer);
      size += answer.bytes.length;
      if (size < MOST_BATCH_BYTES) continue;
      yield this.#batchOf(batch);
      batch = [];
      size = 0;
    }
    if (batch.length > 0) yield this.#batchOf(batch);
  }

  #batchOf(answers: readonly WatchAnswer[]): WatchBytes {
    if (answers.length === 1) return answers[0]!.bytes;
    if (this.#batch && isSame(this.#batch.answers, answers)) return this.#batch.bytes;
    const writer = new BinaryWriter();
    writer.uint32(CURSOR).string(formatCursor(answers.at(-1)!.position));
    writer.uint32(BATCH).fork();
    for (const { bytes } of answers) writer.uint32(ANSWERS).bytes(bytes);
    const bytes = writer.join().finish();
    this.#batch = { answers, bytes };
    return bytes;
  }

  /** Returns the status of a pod as a message. Undefined if the runtime has no such pod. */
  status(podUid: string): PodStatus | undefined {
    const entry = this.#entry(podUid);
    return entry && this.#statusMessage(entry);
  }

  #entry(podUid: string): PodCacheEntry | undefined {
    const entry = this.#options.statuses.get(podUid);
    return entry.status.name === "" && !entry.error ? undefined : entry;
  }

  #statusMessage(entry: PodCacheEntry): PodStatus {
    const { clock } = this.#options;
    return podStatusMessage(entry, clock.now() - (clock.monotonic() - entry.observedAt));
  }
}

function encode(position: LogPosition, item: Partial<WatchResponse>): WatchAnswer {
  const message = { cursor: formatCursor(position), ...nothing, ...item };
  return { position, bytes: WatchResponse.encode(message).finish() };
}

const nothing = { event: undefined, snapshot: undefined, bookmark: undefined, batch: undefined };

function isSame(one: readonly WatchAnswer[], other: readonly WatchAnswer[]): boolean {
  return one.length === other.length && one.every((answer, at) => answer === other[at]);
}
