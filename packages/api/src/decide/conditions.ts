import { compareText } from "../text/index.ts";
import { answerOf, type ConditionAnswer, type PluginAnswers } from "./answers.ts";
import { causeText } from "./condition-changes.ts";
import type { Decision } from "./decision.ts";
import { isDryRun } from "./policy.ts";
import type { RoundInput } from "./round.ts";
import type { PluginCondition } from "./state.ts";
import { thresholdText } from "./threshold-text.ts";

/** A condition of the node, merged from all plugins that report it. */
export type MergedCondition = Decision["conditions"][number];

export interface ConditionProgress {
  /** The state for the next round. */
  conditions: PluginCondition[];
  merged: MergedCondition[];
}

// Bounds the state if a plugin reports a new condition name each round.
const MAX_CONDITIONS_PER_PLUGIN = 16;

/**
 * Computes the conditions after a round. Pure.
 *
 * 1. A condition stays until it has not been reported as met for the transition period, even if its plugin fails or
 *    disconnects. Source: kubelet `pkg/kubelet/eviction/helpers.go`, nodeConditionsObservedSince.
 * 2. Conditions are kept per plugin: if two plugins report the same name, neither clears the other's condition.
 * 3. A plugin in dry run sets no conditions. Conditions that it set before are cleared.
 */
export function advanceConditions(
  input: Pick<RoundInput, "now" | "plugins" | "policy" | "state">,
): ConditionProgress {
  const { now, policy } = input;
  const kept = new Map<string, PluginCondition>();
  for (const condition of input.state.conditions) {
    if (now - condition.lastSeen >= policy.conditionTransitionPeriodMs) continue;
    if (!isDryRun(policy, condition.plugin)) kept.set(keyOf(condition), condition);
  }
  for (const answers of input.plugins) {
    if (isDryRun(policy, answers.plugin)) continue;
    for (const { target, name, effects } of reportedConditions(answers)) {
      const reported = { plugin: answers.plugin, target, name };
      const since = kept.get(keyOf(reported))?.since ?? now;
      const cause = causeOf(answers, name);
      const times = { since, lastSeen: now, ...(cause === undefined ? {} : { cause }) };
      kept.set(keyOf(reported), { ...reported, effects: [...new Set(effects)].sort(), ...times });
    }
  }
  const conditions = bounded([...kept.values()]);
  return { conditions, merged: mergeConditions(conditions) };
}

// A plugin may report the same name in both answers. Their effects are merged.
function reportedConditions({ evictPods, threshold }: PluginAnswers): ConditionAnswer[] {
  const met = answerOf(threshold);
  const found = [answerOf(evictPods)?.condition, met?.metType === "none" ? null : met?.condition];
  const reported = new Map<string, ConditionAnswer>();
  for (const condition of found) {
    if (!condition?.met) continue;
    const key = JSON.stringify([condition.target, condition.name]);
    const effects = [...(reported.get(key)?.effects ?? []), ...condition.effects];
    reported.set(key, { ...condition, effects });
  }
  return [...reported.values()];
}

function causeOf({ threshold }: PluginAnswers, name: string): string | undefined {
  const met = answerOf(threshold);
  return met?.condition?.met && met.condition.name === name ? thresholdText(met.scope, met) : undefined;
}

/** Merges the conditions of all plugins by target and name. The result is sorted. */
export function mergeConditions(conditions: readonly PluginCondition[]): MergedCondition[] {
  const merged = new Map<string, MergedCondition>();
  for (const condition of conditions) {
    const { plugin, target, name, effects, since } = condition;
    const key = JSON.stringify([target, name]);
    const others = merged.get(key);
    merged.set(key, {
      target,
      name,
      effects: [...new Set([...(others?.effects ?? []), ...effects])].sort(),
      plugins: [...(others?.plugins ?? []), plugin],
      why: [...(others ? [others.why] : []), causeText(condition)].join("; "),
      since: Math.min(others?.since ?? since, since),
    });
  }
  return [...merged.values()].sort((a, b) => compareText(a.target, b.target) || compareText(a.name, b.name));
}

// If a plugin exceeds the bound, the conditions reported longest ago are dropped.
function bounded(conditions: readonly PluginCondition[]): PluginCondition[] {
  const newestFirst = [...conditions].sort((a, b) => b.lastSeen - a.lastSeen || compareConditions(a, b));
  const counts = new Map<string, number>();
  const kept = newestFirst.filter(({ plugin }) => {
    const count = (counts.get(plugin) ?? 0) + 1;
    counts.set(plugin, count);
    return count <= MAX_CONDITIONS_PER_PLUGIN;
  });
  return kept.sort(compareConditions);
}

function compareConditions(a: PluginCondition, b: PluginCondition): number {
  return compareText(a.plugin, b.plugin) || compareText(a.target, b.target) || compareText(a.name, b.name);
}

function keyOf({ plugin, target, name }: Pick<PluginCondition, "plugin" | "target" | "name">): string {
  return JSON.stringify([plugin, target, name]);
}
