import { mergeConditions } from "./conditions.ts";
import type { EvictionRecords } from "./records.ts";
import { taintsOf, type WantedTaints } from "./taints.ts";

/** The taints that the stored state leads to; none where it can't be read, which the first round tells. */
export function storedTaints(records: EvictionRecords, prefix: string): WantedTaints {
  try {
    return taintsOf(mergeConditions(records.loadState()?.conditions ?? []), prefix).taints;
  } catch {
    return { node: [], customNodeResource: [] };
  }
}
