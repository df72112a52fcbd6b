import type { DecideInput, Decision } from "../decide/index.ts";
import type { roundRecord, ValueOf } from "../openapi/index.ts";

/** A recorded round: its complete input and its decision, as plain JSON. */
export type RoundRecord = ValueOf<typeof roundRecord>;

/**
 * Returns whether a round is recorded: a threshold was met, a pod was requested, an eviction ended, or conditions
 * changed.
 */
export function isWorthKeeping(input: DecideInput, decision: Decision): boolean {
  const { victims, dryRunVictims, refusals, withdrawals, thresholds } = decision;
  if ([victims, dryRunVictims, refusals, withdrawals, thresholds].some((list) => list.length > 0))
    return true;
  if (input.outcomes.length > 0) return true;
  return conditionNames(decision.state.conditions) !== conditionNames(input.state.conditions);
}

/**
 * Returns a comparison key for a round in which all met thresholds are confirmed and no pod is requested; undefined for
 * any other round. Such rounds may repeat for days: a round with the key of the previous one is not recorded.
 */
export function idleRound(input: DecideInput, decision: Decision): string | undefined {
  const { victims, dryRunVictims, refusals, withdrawals, thresholds, failures } = decision;
  const isQuiet = [victims, dryRunVictims, refusals, withdrawals, input.outcomes].every(
    (list) => list.length === 0,
  );
  if (!isQuiet || thresholds.length === 0 || thresholds.some(({ confirmed }) => !confirmed)) return undefined;
  const met = thresholds.map(({ plugin, scope, metType, held, unserved }) => {
    return [plugin, scope, metType, held?.reason, unserved?.reason];
  });
  const failed = failures.map(({ plugin, call, failure }) => [plugin, call, failure]);
  return JSON.stringify([met, failed, conditionNames(decision.state.conditions)]);
}

function conditionNames(conditions: Decision["state"]["conditions"]): string {
  return JSON.stringify(
    conditions.map(({ plugin, target, name, effects }) => [plugin, target, name, effects]),
  );
}
