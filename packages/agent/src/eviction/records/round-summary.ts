import type { MetThreshold } from "../decide/decision.ts";
import type { EvictionOutcome } from "../decide/outcome.ts";
import type { PodReference } from "../decide/pods.ts";
import type { RefusalReason } from "../decide/refusals.ts";
import { thresholdText } from "../decide/threshold-text.ts";
import type { RoundRecord } from "../replay/round-record.ts";
import { heldText } from "../wording/held.ts";
import { failureText } from "../wording/text.ts";
import { unservedText } from "../wording/unserved.ts";

/** A requested pod whose last eviction failed. */
export interface PausedSummary {
  /** Wall milliseconds; it is not evicted earlier. */
  retryAt: number;
  /** "default/web", the PodDisruptionBudget that refused the eviction; null where it is not known. */
  budget: string | null;
}

/** One round in a line of `nodekeeper rounds`. */
export interface RoundSummary {
  id: number;
  /** Wall milliseconds. */
  at: number;
  pods: number;
  candidates: number;
  plugins: number;
  /**
   * "memory-pressure (hard): memory 94.1 > threshold 90", followed by ", within its grace period" before it is confirmed,
   * or by the reason of a hold.
   */
  met: string[];
  victims: PodReference[];
  dryRunVictims: PodReference[];
  refusals: Partial<Record<RefusalReason, number>>;
  /** The pods of the refusals with the reason "paused"; absent in answers of earlier versions. */
  paused?: PausedSummary[];
  withdrawals: number;
  /** Outcomes of evictions of earlier rounds; the names are empty where they are not recorded. */
  outcomes: (PodReference & Pick<EvictionOutcome, "result" | "message">)[];
  failures: string[];
}

export function summaryOf({ id, input, decision }: RoundRecord): RoundSummary {
  const pending = new Map(input.state.pending.map((pod) => [pod.uid, referenceOf(pod)]));
  const nameOf = (uid: string) => pending.get(uid) ?? { uid, namespace: "", name: "" };
  return {
    id,
    at: input.now,
    pods: input.pods.length,
    candidates: decision.ranking.length,
    plugins: input.plugins.length,
    met: decision.thresholds.map((threshold) => metText(threshold, input.now)),
    victims: decision.victims.map(referenceOf),
    dryRunVictims: decision.dryRunVictims.map(referenceOf),
    refusals: decision.refusalCounts,
    paused: pausedOf(decision),
    withdrawals: decision.withdrawals.length,
    outcomes: input.outcomes.map(({ uid, namespace, name, result, message }) => ({
      ...nameOf(uid),
      ...(namespace !== undefined && name !== undefined ? { namespace, name } : {}),
      result,
      message,
    })),
    failures: decision.failures.map(failureText),
  };
}

function pausedOf({ refusals, state }: RoundRecord["decision"]): PausedSummary[] {
  const refused = new Set(refusals.filter(({ reason }) => reason === "paused").map(({ uid }) => uid));
  return state.paused
    .filter(({ uid }) => refused.has(uid))
    .map(({ until, budget }) => ({ retryAt: until, budget: budget?.name ?? null }));
}

function metText(threshold: MetThreshold, now: number): string {
  const { plugin, scope, metType, confirmed, held, unserved } = threshold;
  const text = `${plugin} (${metType}): ${thresholdText(scope, threshold)}`;
  if (held) return `${text}, on hold: ${heldText(held, now)}`;
  if (unserved) return `${text}; ${unservedText(unserved)}`;
  return confirmed ? text : `${text}, within its grace period`;
}

function referenceOf({ uid, namespace, name }: PodReference): PodReference {
  return { uid, namespace, name };
}
