import { type DesiredTaints, mergeConditions, type TaintRules, taintsOf } from "@nodekeeper/api/decide";
import type { StoredNodeEvent } from "../../state/index.ts";
import type { EvictionRecords } from "./records.ts";

// Matches the messages of `TaintReports`.
const ABOUT_TAINT = /^taint (\S+) (added|restored|removed)/;

/**
 * Returns the taints of the Node that the agent recorded as added and not as removed since, by itself or by another
 * client: by "key:effect", with the time of the record in wall milliseconds. Pure.
 * @param events the history of the node, oldest first
 */
export function addedTaints(events: Iterable<Pick<StoredNodeEvent, "at" | "message">>): Map<string, number> {
  const added = new Map<string, number>();
  for (const { at, message } of events) {
    const [, taint, change] = ABOUT_TAINT.exec(message) ?? [];
    if (taint === undefined) continue;
    if (change === "removed") added.delete(taint);
    else if (change === "added" || !added.has(taint)) added.set(taint, at);
  }
  return added;
}

/** Returns the taints of the stored conditions; none if the state can't be read, which the first round logs. */
export function storedTaints(records: EvictionRecords, rules: TaintRules): DesiredTaints {
  try {
    const conditions = records.loadState()?.conditions ?? [];
    return taintsOf({ conditions, merged: mergeConditions(conditions) }, rules).taints;
  } catch {
    return { node: [], customNodeResource: [] };
  }
}
