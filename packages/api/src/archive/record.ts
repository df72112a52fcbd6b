import type { ConditionChange } from "../decide/index.ts";
import type { answers } from "../openapi/index.ts";
import type { EvictionStep, ExplainedRound, RecordCoverage } from "../records/index.ts";
import type { ValueOf } from "../schemas/index.ts";
import type { EventName } from "./events.ts";

type PodLine = Extract<ValueOf<(typeof answers)["eviction/history"]>["lines"][number], { kind: "pod" }>;

/** The bodies of records by event, as far as they are read. */
export interface ArchivedBodies {
  "nodekeeper.eviction.decision": ExplainedRound;
  "nodekeeper.eviction.condition": ConditionChange;
  "nodekeeper.eviction.step": EvictionStep;
  "nodekeeper.pod.ended": PodLine;
  "nodekeeper.mark": Omit<ValueOf<(typeof answers)["marks"]>["items"][number], "pod">;
  "nodekeeper.gap": RecordCoverage["gaps"][number];
}

/** An event whose records are read. */
export type ReadEvent = keyof ArchivedBodies & EventName;

/** A record of one event, as it was read. Times are milliseconds since the epoch. */
export interface ArchivedRecord<Event extends ReadEvent = ReadEvent> {
  /** Of the record, however often it was exported. */
  id: string;
  /** Position in the queue of the node's state database. Smaller ones were written before. */
  sequence: number;
  node: string;
  at: number;
  event: Event;
  body: ArchivedBodies[Event];
  /** Controller of the pod: "ReplicaSet/web-5d4f". Empty if there is none. */
  owner: string;
}

/** What the archive has of a node. */
export interface ArchivedNode {
  name: string;
  /** Times of its first and last records. */
  oldest: number;
  newest: number;
  /** What is missing in between, as far as the agent knew. */
  gaps: RecordCoverage["gaps"];
}

/** Returns the records of one event. */
export function recordsOf<Event extends ReadEvent>(
  records: readonly ArchivedRecord[],
  event: Event,
): ArchivedRecord<Event>[] {
  return records.filter((record) => record.event === event) as ArchivedRecord<Event>[];
}
