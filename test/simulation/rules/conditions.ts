import { answerOf } from "@nodekeeper/api/decide";
import { isDryRun } from "../world/settings.ts";
import { type RecordedRound, recordedRounds } from "./recorded-rounds.ts";
import type { Rule } from "./rule.ts";

export const conditions: readonly Rule[] = [
  {
    promise:
      "A condition stays until its plugin has not reported it for the transition period, also while calls fail, and plugins in dry run set none.",
    atRest: async (world) => {
      const { machine, faults, plan } = world;
      // The times of rounds are those of the wall clock, and an agent that can't write its state may lose it.
      const { fullDisks, readOnlyDisks, powerLosses } = faults;
      if (machine.wallOffset !== 0 || fullDisks || readOnlyDisks || powerLosses) return [];
      // A plugin that lies reports more conditions than are kept of a plugin.
      if (Number.isFinite(plan.faults.lies)) return [];
      return wrongConditions(await recordedRounds(world));
    },
  },
];

/** Compares what rounds decided with what plugins reported in them and in the rounds before. */
function wrongConditions(rounds: readonly RecordedRound[]): string[] {
  const reported = new Map<string, { plugin: string; at: number }>();
  return rounds.flatMap(({ id, input: { now, plugins, policy }, decision }) => {
    for (const { plugin, evictPods, threshold } of plugins) {
      const met = answerOf(threshold);
      for (const condition of [
        answerOf(evictPods)?.condition,
        met?.metType === "none" ? null : met?.condition,
      ]) {
        if (!condition?.met) continue;
        reported.set(`${condition.name} of ${plugin}`, { plugin, at: now });
      }
    }
    for (const [key, { plugin, at }] of reported) {
      if (now - at >= policy.conditionTransitionPeriodMs || isDryRun(policy, plugin)) reported.delete(key);
    }
    const decided = decision.conditions.flatMap(({ name, plugins: owners }) =>
      owners.map((plugin) => ({ plugin, key: `${name} of ${plugin}` })),
    );
    const kept = new Set(decided.map(({ key }) => key));
    const lost = [...reported].filter(([key]) => !kept.has(key));
    return [
      ...lost.map(
        ([key, { at }]) => `round ${id}: no ${key}, which was reported ${(now - at) / 1_000} s before`,
      ),
      ...decided
        .filter(({ plugin }) => isDryRun(policy, plugin))
        .map(({ key }) => `round ${id}: ${key}, which is in dry run`),
    ];
  });
}
