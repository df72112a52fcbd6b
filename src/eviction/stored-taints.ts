import { mergeConditions } from "./conditions.ts";
import type { EvictionRecords } from "./records.ts";
import { type TaintRules, taintsOf, type WantedTaints } from "./taints.ts";

/** The taints that the stored state leads to; none where it can't be read, which the first round reports. */
export function storedTaints(records: EvictionRecords, rules: TaintRules): WantedTaints {
  try {
    const conditions = records.loadState()?.conditions ?? [];
    return taintsOf({ conditions, merged: mergeConditions(conditions) }, rules).taints;
  } catch {
    return { node: [], customNodeResource: [] };
  }
}
