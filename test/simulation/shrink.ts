import type { Outcome, simulate as simulateWorld } from "./simulate.ts";
import { type FaultRates, noFaults } from "./world/faults.ts";
import type { PlanChanges } from "./world/plan.ts";

// What can be left out of a world, one after the other. What remains is needed for the finding.
const smaller: readonly ((plan: Outcome["plan"]) => PlanChanges)[] = [
  ...(Object.keys(noFaults) as (keyof FaultRates)[]).map((name) => () => ({
    faults: { [name]: noFaults[name] },
  })),
  () => ({ stopped: undefined }),
  () => ({ mostReplicas: 1 }),
  () => ({ consumers: 1 }),
  () => ({ reporters: 1 }),
  () => ({ evictionPlugins: 1 }),
  () => ({ hasBinding: false }),
  () => ({ hasShares: false }),
  () => ({ hasPools: false }),
  () => ({ hasShortLog: false }),
  () => ({ hasArchive: false }),
  () => ({ drivers: 0 }),
  () => ({ drivers: 1 }),
  ({ stormMs }) => ({ stormMs: Math.round(stormMs / 2) }),
  ({ stormMs }) => ({ stormMs: Math.round(stormMs / 2) }),
  ({ stormMs }) => ({ stormMs: Math.round(stormMs * 0.75) }),
];

/** Looks for a smaller world that breaks the same promise. Returns the last one found. */
export async function shrink(
  simulate: typeof simulateWorld,
  outcome: Outcome,
  say: (line: string) => void,
): Promise<Outcome> {
  const wanted = new Set(outcome.broken.map(({ promise }) => promise));
  let [found, changes]: [Outcome, PlanChanges] = [outcome, {}];
  for (const smallerOf of smaller) {
    const more = smallerOf(found.plan);
    const tried = { ...changes, ...more, faults: { ...changes.faults, ...more.faults } };
    const next = await simulate(outcome.seed, tried);
    if (!next.broken.some(({ promise }) => wanted.has(promise))) continue;
    [found, changes] = [next, tried];
    say(`smaller: ${JSON.stringify(more)}, ${next.events.length} events`);
  }
  return found;
}
