import { type ConditionChange, conditionChangeText } from "../decide/index.ts";
import type { EvictionStep, RecordCoverage } from "../records/index.ts";
import { type ArchivedNode, type ArchivedRecord, recordsOf } from "./record.ts";

/** The conditions and taints that eviction set on a node, from its exported records. */
export interface ArchivedNodeExplanation {
  nodeName: string;
  /** Time of the last record of the node, milliseconds since the epoch. */
  lastAt: number;
  /** Conditions that were set and not cleared by then. */
  conditions: ConditionChange["condition"][];
  /** Conditions, taints, and starts and stops of the agent, in the words of the agent; oldest first. */
  events: EvictionStep[];
  coverage: RecordCoverage;
}

// Events of the node have no pod.
const NODE = "";

/** Explains a node from its exported records, in their order. */
export function explainArchivedNode(
  records: readonly ArchivedRecord[],
  { name, oldest, newest, gaps }: ArchivedNode,
): ArchivedNodeExplanation {
  const changes = recordsOf(records, "nodekeeper.eviction.condition");
  const standing = new Map<string, ConditionChange["condition"]>();
  for (const { body } of changes) {
    const { plugin, target, name: condition, effects } = body.condition;
    const key = JSON.stringify([plugin, target, condition, effects]);
    if (body.kind === "set") standing.set(key, body.condition);
    else standing.delete(key);
  }
  const events = [
    ...changes.map(({ at, body }) => ({ uid: NODE, at, message: conditionChangeText(body) })),
    ...recordsOf(records, "nodekeeper.mark").map(({ at, body }) => ({ uid: NODE, at, message: body.title })),
  ];
  return {
    nodeName: name,
    lastAt: newest,
    conditions: [...standing.values()],
    events: events.sort((a, b) => a.at - b.at),
    coverage: { oldest, gaps: [...gaps] },
  };
}
