import type { Decision } from "./decision.ts";
import type { DecideInput } from "./round.ts";

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

function conditionNames(conditions: Decision["state"]["conditions"]): string {
  return JSON.stringify(
    conditions.map(({ plugin, target, name, effects }) => [plugin, target, name, effects]),
  );
}
