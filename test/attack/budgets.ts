import type { Outcome } from "./measure.ts";

/** What an attack may do to the agent. Times come on top of an idle agent's on the same machine. */
export interface Budgets {
  turnMs: number;
  livezMs: number;
  /** Resident memory above that before the attack, MB: at its highest, and after it. */
  growthMb: number;
  keptMb: number;
}

/** @param isShort on a busy machine, where collections of garbage come late and CPU time is not exact */
export function budgets(isShort: boolean): Budgets {
  const budget: Budgets = { turnMs: 50, livezMs: 250, growthMb: 150, keptMb: 60 };
  if (!isShort) return budget;
  // Chunks of lists of 60 MB are freed by a full collection, which an idle agent makes 8 s later.
  return { turnMs: 4 * budget.turnMs, livezMs: 20 * budget.livezMs, growthMb: 250, keptMb: 120 };
}

/**
 * The budgets that an attack exceeded, as texts.
 * @param idle what an agent that is left alone comes to, measured the same way
 */
export function excesses(outcome: Outcome, idle: Outcome, budget: Budgets): string[] {
  const { peakMb, afterMb } = outcome;
  const all = [
    { what: "turn", value: outcome.turnMs, most: idle.turnMs + budget.turnMs },
    { what: "/livez", value: outcome.livezMs, most: idle.livezMs + budget.livezMs },
    { what: "peak", value: peakMb - idle.rssMb, most: budget.growthMb },
    { what: "after", value: afterMb - idle.rssMb, most: budget.keptMb },
  ];
  return all.filter(({ value, most }) => value > most).map(({ what }) => what);
}
