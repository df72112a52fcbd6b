import type { MetThreshold } from "./decision.ts";
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
  /** "memory-pressure memory hard 94.1 > 90", with "(not long enough yet)" where its grace period was not over. */
  met: string[];
  victims: PodReference[];
  dryRunVictims: PodReference[];
  refusals: Partial<Record<RefusalReason, number>>;
  withdrawals: number;
  /** How evictions of earlier rounds ended; the names are empty where the records don't have them. */
  outcomes: (PodReference & { result: string; message: string })[];
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
    met: decision.thresholds.map(metText),
    victims: decision.victims.map(referenceOf),
    dryRunVictims: decision.dryRunVictims.map(referenceOf),
    refusals: decision.refusalCounts,
    withdrawals: decision.withdrawals.length,
    outcomes: input.outcomes.map(({ uid, result, message }) => ({ ...nameOf(uid), result, message })),
    failures: decision.failures.map(({ plugin, call, failure }) => `${plugin} ${call}: ${failure}`),
  };
}

function metText(threshold: MetThreshold): string {
  const { plugin, scope, metType, observedValue, thresholdValue, operator, confirmed } = threshold;
  const side = operator === "lessThan" ? "<" : ">";
  const values = `${observedValue ?? "unknown"} ${side} ${thresholdValue ?? "unknown"}`;
  return `${plugin} ${scope} ${metType} ${values}${confirmed ? "" : " (not long enough yet)"}`;
}

function referenceOf({ uid, namespace, name }: PodReference): PodReference {
  return { uid, namespace, name };
}
