import type { StoredNodeEvent } from "../../state/index.ts";

// The messages of `TaintReports`.
const ABOUT_TAINT = /^taint (\S+) (added|restored|removed)/;

/**
 * The taints of the Node that the agent recorded it added, and not that it or another client removed since, by
 * "key:effect", with the time of the record in wall milliseconds. Pure.
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
