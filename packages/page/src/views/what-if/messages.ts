import type {
  EvictionPolicy,
  PolicyDifference,
  Replay,
} from "../../../../agent/src/eviction/replay/index.ts";

/** What the view sends to its worker. */
export type ToWorker =
  /** Read the rounds since a time, milliseconds since the epoch, in place of those read before; then replay them. */
  | { kind: "read"; since: number }
  /** Read the rounds that follow those that were read, also those recorded since. */
  | { kind: "readMore" }
  /** Replay what is read with this policy, in place of the replay that runs. @param run increases from one to the next */
  | { kind: "replay"; run: number; policy: EvictionPolicy }
  /** Continue a replay that was stopped. */
  | { kind: "resume" }
  /** Stop reading and replaying. What is read is kept, and the replay as far as it is. */
  | { kind: "stop" };

/** What the worker sends. */
export type FromWorker =
  | { kind: "records"; records: RecordsRead }
  | { kind: "progress"; run: number; done: number; of: number }
  | { kind: "result"; result: ReplayResult };

/** Which recorded rounds have been read. */
export interface RecordsRead {
  rounds: number;
  /** Times of the first and the last one, milliseconds since the epoch; null without any. */
  first: number | null;
  last: number | null;
  /** The id of the last one; 0 without any. */
  lastId: number;
  /** The policy of the last one. */
  policy: EvictionPolicy | null;
  /** Rounds that the agent leaves out, because they exceed its largest answer. */
  tooLarge: { id: number; bytes: number }[];
  isReading: boolean;
  /** Whether there are more. */
  hasMore: boolean;
  /** Whether the page keeps as many as it can. */
  isFull: boolean;
  /** Why reading ended early. */
  failure?: ReadFailure;
}

/** `refused`: the agent's own message. `unreachable`: no agent answers. */
export interface ReadFailure {
  kind: "refused" | "unreachable";
  /** Of HTTP; 0 where no agent answers. */
  status: number;
  message: string;
}

export interface ReplayResult {
  run: number;
  /** Of the rounds replayed so far; while rounds are being read, those are not all. */
  replay: Replay;
  /** Settings that differ from the policy of the last round. */
  policy: PolicyDifference[];
  /** Rounds that can't be replayed. */
  malformed: { id: number; message: string }[];
}
