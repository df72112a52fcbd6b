import type { EvictionPolicy } from "@nodekeeper/api/decide";
import type { PolicyDifference, Replay } from "@nodekeeper/api/replay";

/** Messages from the view to its worker. */
export type ToWorker =
  /** Read the rounds since a time, milliseconds since the epoch, replacing those read before; then replay them. */
  | { kind: "read"; since: number }
  /** Read the rounds that follow, including those recorded since. */
  | { kind: "readMore" }
  /** Replay the rounds read with this policy, replacing the current replay. @param run increasing */
  | { kind: "replay"; run: number; policy: EvictionPolicy }
  /** Resume a stopped replay. */
  | { kind: "resume" }
  /** Stop reading and replaying. The rounds read and the partial result are kept. */
  | { kind: "stop" };

/** Messages from the worker. */
export type FromWorker =
  | { kind: "records"; records: RecordsRead }
  | { kind: "progress"; run: number; done: number; of: number }
  | { kind: "result"; result: ReplayResult };

/** The recorded rounds read so far. */
export interface RecordsRead {
  rounds: number;
  /** Times of the first and last round, milliseconds since the epoch; null if there are none. */
  first: number | null;
  last: number | null;
  /** Id of the last round; 0 if there is none. */
  lastId: number;
  /** Policy of the last round. */
  policy: EvictionPolicy | null;
  /** Rounds omitted by the agent because they exceed the maximum response size. */
  tooLarge: { id: number; bytes: number }[];
  isReading: boolean;
  /** Whether there are more. */
  hasMore: boolean;
  /** Whether the page has reached its limit of rounds. */
  isFull: boolean;
  /** Why reading ended early. */
  failure?: ReadFailure;
}

/** `refused`: the agent's error. `unreachable`: the agent does not respond. */
export interface ReadFailure {
  kind: "refused" | "unreachable";
  /** HTTP status; 0 if the agent is unreachable. */
  status: number;
  message: string;
}

export interface ReplayResult {
  run: number;
  /** Covers the rounds replayed so far, which is only a part while rounds are being read. */
  replay: Replay;
  /** Settings that differ from the policy of the last round. */
  policy: PolicyDifference[];
  /** Rounds that cannot be replayed. */
  malformed: { id: number; message: string }[];
}
