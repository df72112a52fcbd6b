import type { MetThreshold } from "../decide/decision.ts";
import type { PodReference } from "../decide/pods.ts";
import type { RefusalReason } from "../decide/refusals.ts";
import type { EvictionOutcome } from "../decide/round.ts";
import { thresholdText } from "../decide/threshold-text.ts";
import { heldText } from "./held-text.ts";
import type { RoundRecord } from "./round-record.ts";

/** One round in a line, as `nodekeeper rounds` lists it. */
export interface RoundSummary {
  id: number;
  /** Wall milliseconds. */
  at: number;
  pods: number;
  candidates: number;
  plugins: number;
  /**
   * "memory-pressure (hard): memory 94.1 > threshold 90", with ", within its grace period" until that is over, and with
   * what holds it back where its plugin was not asked for a pod.
   */
  met: string[];
  victims: PodReference[];
  dryRunVictims: PodReference[];
  refusals: Partial<Record<RefusalReason, number>>;
  withdrawals: number;
  /** How evictions of earlier rounds ended; the names are empty where the records don't have them. */
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
    withdrawals: decision.withdrawals.length,
    outcomes: input.outcomes.map(({ uid, namespace, name, result, message }) => ({
      ...nameOf(uid),
      ...(namespace !== undefined && name !== undefined ? { namespace, name } : {}),
      result,
      message,
    })),
    failures: decision.failures.map(({ plugin, call, failure }) => `${plugin} ${call}: ${failure}`),
  };
}

function metText(threshold: MetThreshold, now: number): string {
  const { plugin, scope, metType, confirmed, held } = threshold;
  const text = `${plugin} (${metType}): ${thresholdText(scope, threshold)}`;
  if (held) return `${text}, held back: ${heldText(held, now)}`;
  return confirmed ? text : `${text}, within its grace period`;
}

function referenceOf({ uid, namespace, name }: PodReference): PodReference {
  return { uid, namespace, name };
}
