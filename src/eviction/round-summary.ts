import type { PodReference } from "./pods.ts";
import type { RefusalReason } from "./refusals.ts";
import type { RoundRecord } from "./round-record.ts";

/** One round in a line, as `nodekeeper rounds` lists it. */
export interface RoundSummary {
  id: number;
  /** Wall milliseconds. */
  at: number;
  pods: number;
  candidates: number;
  plugins: number;
  /** "memory-pressure memory hard", with "(not long enough yet)" where its grace period was not over. */
  met: string[];
  victims: PodReference[];
  dryRunVictims: PodReference[];
  refusals: Partial<Record<RefusalReason, number>>;
  withdrawals: number;
  /** How evictions of earlier rounds ended. */
  outcomes: { uid: string; result: string; message: string }[];
  failures: string[];
}

export function summaryOf({ id, input, decision }: RoundRecord): RoundSummary {
  return {
    id,
    at: input.now,
    pods: input.pods.length,
    candidates: decision.ranking.length,
    plugins: input.plugins.length,
    met: decision.thresholds.map(
      ({ plugin, scope, metType, confirmed }) =>
        `${plugin} ${scope} ${metType}${confirmed ? "" : " (not long enough yet)"}`,
    ),
    victims: decision.victims.map(referenceOf),
    dryRunVictims: decision.dryRunVictims.map(referenceOf),
    refusals: decision.refusalCounts,
    withdrawals: decision.withdrawals.length,
    outcomes: input.outcomes,
    failures: decision.failures.map(({ plugin, call, failure }) => `${plugin} ${call}: ${failure}`),
  };
}

function referenceOf({ uid, namespace, name }: PodReference): PodReference {
  return { uid, namespace, name };
}
