import { type DesiredTaints, mergeConditions, type TaintRules, taintsOf } from "@nodekeeper/api/decide";
import type { EvictionRecords } from "./records.ts";

/** Returns the taints of the stored conditions; none if the state can't be read, which `EvictionLedger` logs. */
export function storedTaints(records: EvictionRecords, rules: TaintRules): DesiredTaints {
  try {
    const conditions = records.loadState()?.conditions ?? [];
    return taintsOf({ conditions, merged: mergeConditions(conditions) }, rules).taints;
  } catch {
    return { node: [], customNodeResource: [] };
  }
}
