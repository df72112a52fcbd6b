import { mergeConditions } from "../decide/conditions.ts";
import { type DesiredTaints, type TaintRules, taintsOf } from "../decide/taints.ts";
import type { EvictionRecords } from "./records.ts";

/** The taints of the stored conditions; none where the state can't be read, which is logged at the first round. */
export function storedTaints(records: EvictionRecords, rules: TaintRules): DesiredTaints {
  try {
    const conditions = records.loadState()?.conditions ?? [];
    return taintsOf({ conditions, merged: mergeConditions(conditions) }, rules).taints;
  } catch {
    return { node: [], customNodeResource: [] };
  }
}
