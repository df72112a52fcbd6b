import type { Decision } from "../decide/decision.ts";
import { defaultEvictionPolicy } from "../decide/policy.ts";
import type { DecideInput } from "../decide/round.ts";
import { emptyEvictionState } from "../decide/state.ts";

/** A round as it is kept: its whole input, and what was decided. Plain JSON. */
export interface RoundRecord {
  /** Increases from round to round. */
  id: number;
  input: DecideInput;
  decision: Decision;
}

/** Whether a round is worth keeping: it met, chose, refused, withdrew or learned of something, or changed taints. */
export function isWorthKeeping(input: DecideInput, decision: Decision): boolean {
  const { victims, dryRunVictims, refusals, withdrawals, thresholds } = decision;
  if ([victims, dryRunVictims, refusals, withdrawals, thresholds].some((list) => list.length > 0))
    return true;
  if (input.outcomes.length > 0) return true;
  return conditionNames(decision.state.conditions) !== conditionNames(input.state.conditions);
}

/**
 * What a round says in which thresholds are met for their grace period and no pod is asked for or named; undefined for
 * any other round. Such rounds may follow each other for days: one that says the same as the one before is not kept.
 */
export function idleRound(input: DecideInput, decision: Decision): string | undefined {
  const { victims, dryRunVictims, refusals, withdrawals, thresholds, failures } = decision;
  const isQuiet = [victims, dryRunVictims, refusals, withdrawals, input.outcomes].every(
    (list) => list.length === 0,
  );
  if (!isQuiet || thresholds.length === 0 || thresholds.some(({ confirmed }) => !confirmed)) return undefined;
  const met = thresholds.map(({ plugin, scope, metType, held }) => [plugin, scope, metType, held?.reason]);
  const failed = failures.map(({ plugin, call, failure }) => [plugin, call, failure]);
  return JSON.stringify([met, failed, conditionNames(decision.state.conditions)]);
}

function conditionNames(conditions: Decision["state"]["conditions"]): string {
  return JSON.stringify(
    conditions.map(({ plugin, target, name, effects }) => [plugin, target, name, effects]),
  );
}

const unlimited = { perNode: null, perNamespace: null, perOwner: null };
const anyGrace = { shortestSeconds: 0 };

/** A recorded input with what was added to state and policy since an earlier version recorded it. */
export function completeInput<T extends Pick<DecideInput, "state" | "policy">>(input: T): T {
  const { state, policy } = input;
  const limits = { ...unlimited, ...policy.limits };
  const grace = { ...anyGrace, ...policy.grace };
  return {
    ...input,
    state: { ...emptyEvictionState(), ...state },
    policy: { ...defaultEvictionPolicy, ...policy, limits, grace },
  };
}
