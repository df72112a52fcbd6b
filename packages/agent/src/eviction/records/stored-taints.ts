import { mergeConditions } from "../decide/conditions.ts";
import { type TaintRules, taintsOf, type WantedTaints } from "../decide/taints.ts";
import type { EvictionRecords } from "./records.ts";

/** The taints that the stored state leads to; none where it can't be read, which the first round reports. */
export function storedTaints(records: EvictionRecords, rules: TaintRules): WantedTaints {
  try {
    const conditions = records.loadState()?.conditions ?? [];
    return taintsOf({ conditions, merged: mergeConditions(conditions) }, rules).taints;
  } catch {
    return { node: [], customNodeResource: [] };
  }
}
