import { explainedRound, nodePod, step } from "../openapi/index.ts";
import * as s from "../schemas/index.ts";
import { SCHEMA_VERSION } from "./events.ts";
import type { ArchivedRecord, ReadEvent } from "./record.ts";

const schemas: Readonly<Record<ReadEvent, s.JsonSchema>> = {
  "nodekeeper.eviction.decision": explainedRound.json,
  "nodekeeper.eviction.condition": s.object({
    kind: s.oneOf(["set", "cleared"]),
    condition: s.storedCondition,
  }).json,
  "nodekeeper.eviction.step": step.json,
  "nodekeeper.pod.ended": s.object({ pod: nodePod, events: s.list(step), steps: s.list(step) }).json,
  "nodekeeper.mark": s.object({ at: s.time(), kind: s.text(), title: s.text() }).json,
  "nodekeeper.gap": s.object({ from: s.time(), to: s.time(), why: s.text() }).json,
};

/** The events whose records are read. */
export const readEvents = Object.keys(schemas) as ReadEvent[];

/** A row of a store of logs: attributes and other fields by name, as texts. */
export interface StoredRow {
  /** RFC 3339. */
  time: string;
  event: string;
  body: string;
  fields: Readonly<Record<string, string>>;
}

/**
 * Parses a row. Returns the problem if the row is not a valid record of one of `readEvents`, for example because it was
 * not exported by an agent.
 */
export function readRecord({
  time,
  event,
  body: text,
  fields,
}: StoredRow): ArchivedRecord | { problem: string } {
  const id = fields["nodekeeper.record.id"] ?? "";
  const node = fields["k8s.node.name"] ?? "";
  const at = Date.parse(time);
  const sequence = Number(fields["nodekeeper.record.sequence"]);
  const version = Number(fields["nodekeeper.schema.version"]);
  const name = id === "" ? `a record of ${time}` : `record ${id}`;
  const problem = (why: string) => ({ problem: `${name}: ${why}` });
  if (id === "" || node === "") return problem("it has no nodekeeper.record.id or k8s.node.name");
  if (!isReadEvent(event)) return problem(`its event "${event}" is unknown`);
  if (version !== SCHEMA_VERSION)
    return problem(`schema version ${version}; this program reads version ${SCHEMA_VERSION}`);
  if (!Number.isFinite(at) || !Number.isSafeInteger(sequence)) return problem("malformed time or sequence");
  let body: unknown;
  try {
    body = JSON.parse(text);
  } catch {
    return problem("its body is not JSON");
  }
  const mismatch = s.mismatchOf(schemas[event], body);
  if (mismatch !== undefined) return problem(`its body is malformed: ${mismatch}`);
  const owner = fields["nodekeeper.pod.owner"] ?? "";
  return { id, sequence, node, at, event, body, owner } as ArchivedRecord;
}

function isReadEvent(event: string): event is ReadEvent {
  return Object.hasOwn(schemas, event);
}

/** Returns the records in their order, each once. Those of one time are in the order in which they were written. */
export function inOrder(records: readonly ArchivedRecord[]): ArchivedRecord[] {
  return [...new Map(records.map((record) => [record.id, record])).values()].sort(
    (a, b) => a.at - b.at || a.sequence - b.sequence,
  );
}
