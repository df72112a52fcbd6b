import { mergeConditions } from "../decide/conditions.ts";
import type { EvictionPolicy } from "../decide/policy.ts";
import type { EvictionState, PluginCondition } from "../decide/state.ts";
import { taintsOf } from "../decide/taints.ts";
import type { EvictionStep, LiveTaints } from "../parts.ts";
import type { RecordCoverage } from "./coverage.ts";

/** A condition that a plugin reports, with its taints. Times are wall milliseconds. */
export interface ExplainedCondition extends Omit<PluginCondition, "lastSeen"> {
  /** "nodekeeper.dev/DiskHot:NoSchedule"; empty where the effects are malformed or not allowed. */
  taints: string[];
  /** When the plugin last reported it as met. */
  lastMet: number;
  /** Whether the plugin reported it in the last round. */
  isMet: boolean;
  /** When it is cleared unless it is reported again; null while it is met. */
  until: number | null;
}

/** A taint of the Node that the agent added, that has its prefix, or that equals the taint of a condition. */
export interface ExplainedTaint {
  /** "nodekeeper.dev/DiskHot:NoSchedule" */
  taint: string;
  /** Whether the agent added it, as its annotation and managedFields show. */
  isOwn: boolean;
  /** Whether a condition of the last round requires it. */
  isDesired: boolean;
}

/** The conditions and taints that eviction sets on the node, and their history. Plain JSON. */
export interface NodeExplanation {
  /** Null where it is read from records of which there are none. */
  nodeName: string | null;
  /** Wall milliseconds of the last round; null before the first. */
  at: number | null;
  /**
   * How long a condition stays after it was last reported, milliseconds, by the configuration in force. Of records that no
   * running agent serves: by that of the newest round; null where none is recorded.
   */
  transitionMs: number | null;
  conditions: ExplainedCondition[];
  /** As last read; null before that, and in records that no running agent serves. */
  taints: ExplainedTaint[] | null;
  /** Whether every plugin is in dry run: then taints are left as they are. */
  isDryRun: boolean;
  /** Conditions set and cleared, taints added and removed, oldest first. */
  events: EvictionStep[];
  /** Wall milliseconds of the oldest record; null where there is none. */
  recordsSince: number | null;
  /** From when and where records are complete. */
  coverage: RecordCoverage;
}

/** The conditions of a state, and what becomes of them under a policy. */
export function explainConditions(
  { at, conditions }: Pick<EvictionState, "at" | "conditions">,
  policy: EvictionPolicy,
): ExplainedCondition[] {
  return conditions.map(({ lastSeen, ...condition }) => {
    const alone = [{ ...condition, lastSeen }];
    const { taints } = taintsOf({ conditions: alone, merged: mergeConditions(alone) }, policy);
    const isMet = at !== null && lastSeen >= at;
    return {
      ...condition,
      taints: [
        ...taints.node.map(({ key, effect }) => `${key}:${effect}`),
        ...taints.customNodeResource.map(({ qosLevel, key, effect }) => `${key}:${effect} (${qosLevel})`),
      ],
      lastMet: lastSeen,
      isMet,
      until: isMet ? null : lastSeen + policy.conditionTransitionPeriodMs,
    };
  });
}

/** The taints of a Node that concern eviction, sorted. */
export function explainTaints(
  { taints, own }: LiveTaints,
  conditions: readonly ExplainedCondition[],
  { taintPrefix }: Pick<EvictionPolicy, "taintPrefix">,
): ExplainedTaint[] {
  const desired = new Set(
    conditions.filter(({ target }) => target === "node").flatMap((condition) => condition.taints),
  );
  return taints
    .map(({ key, effect }) => `${key}:${effect}`)
    .filter((taint) => own.has(taint) || desired.has(taint) || taint.startsWith(`${taintPrefix}/`))
    .sort()
    .map((taint) => ({ taint, isOwn: own.has(taint), isDesired: desired.has(taint) }));
}
