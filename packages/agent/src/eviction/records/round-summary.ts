import { endOf, type MetThreshold, referenceTo, thresholdText } from "@nodekeeper/api/decide";
import type { PausedSummary, RoundRecord, RoundSummary } from "@nodekeeper/api/records";
import { failureText, whyNoPodText } from "@nodekeeper/api/wording";

/** Returns the summary of a recorded round. If the name of a pod with an outcome is unknown, it is empty. Pure. */
export function summaryOf({ id, input, decision }: RoundRecord): RoundSummary {
  const pending = new Map(input.state.pending.map((pod) => [pod.uid, referenceTo(pod)]));
  const nameOf = (uid: string) => pending.get(uid) ?? { uid, namespace: "", name: "" };
  return {
    id,
    at: input.now,
    pods: input.pods.length,
    candidates: decision.ranking.length,
    plugins: input.plugins.length,
    met: decision.thresholds.map((threshold) => metText(threshold, input.now)),
    victims: decision.victims.map(referenceTo),
    dryRunVictims: decision.dryRunVictims.map(referenceTo),
    refusals: decision.refusalCounts,
    paused: pausedOf(decision),
    withdrawals: decision.withdrawals.length,
    outcomes: input.outcomes.map((outcome) => {
      const { uid, namespace, name } = outcome;
      const known = namespace !== undefined && name !== undefined ? { namespace, name } : {};
      return { ...nameOf(uid), ...known, ...endOf(outcome) };
    }),
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
  const { plugin, scope, metType, confirmed } = threshold;
  const text = `${plugin} (${metType}): ${thresholdText(scope, threshold)}`;
  const why = whyNoPodText(threshold, now);
  if (why) return `${text}; ${why}`;
  return confirmed ? text : `${text}, within its grace period`;
}
