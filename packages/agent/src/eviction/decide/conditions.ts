import { answerOf, type ConditionAnswer, type PluginAnswers } from "./answers.ts";
import { causeText } from "./condition-changes.ts";
import { isDryRun } from "./policy.ts";
import { compareText } from "./rank.ts";
import type { RoundInput } from "./round.ts";
import type { PluginCondition } from "./state.ts";
import { thresholdText } from "./threshold-text.ts";

/** A condition of the node, whoever wants it. */
export interface MergedCondition {
  target: ConditionAnswer["target"];
  name: string;
  /** Of all plugins together, sorted. */
  effects: string[];
  /** Who wants it, sorted. */
  plugins: string[];
  /** "ts-evict reports disk 95 > threshold 90", of each plugin. */
  why: string;
  /** Milliseconds since the epoch. */
  since: number;
}

export interface ConditionProgress {
  /** For the next round. */
  conditions: PluginCondition[];
  merged: MergedCondition[];
}

// A plugin that makes up new names each round must not grow the state without bound.
const MAX_CONDITIONS_PER_PLUGIN = 16;

/**
 * Moves the conditions on. One stays until it has not been met for the transition period, whatever its plugin does
 * meanwhile; it is kept for each plugin by itself, so that of two plugins with one name in mind none undoes the other's.
 * A plugin in dry run has no conditions.
 */
export function advanceConditions(
  input: Pick<RoundInput, "now" | "plugins" | "policy" | "state">,
): ConditionProgress {
  const { now, policy } = input;
  const kept = new Map<string, PluginCondition>();
  for (const condition of input.state.conditions) {
    if (now - condition.lastSeen >= policy.conditionTransitionMs) continue;
    if (!isDryRun(policy, condition.plugin)) kept.set(keyOf(condition), condition);
  }
  for (const answers of input.plugins) {
    if (isDryRun(policy, answers.plugin)) continue;
    for (const { target, name, effects } of wantedConditions(answers)) {
      const wanted = { plugin: answers.plugin, target, name };
      const since = kept.get(keyOf(wanted))?.since ?? now;
      const cause = causeOf(answers, name);
      const times = { since, lastSeen: now, ...(cause === undefined ? {} : { cause }) };
      kept.set(keyOf(wanted), { ...wanted, effects: [...new Set(effects)].sort(), ...times });
    }
  }
  const conditions = bounded([...kept.values()]);
  return { conditions, merged: mergeConditions(conditions) };
}

// One name may be in both answers of a plugin: their effects add up.
function wantedConditions({ evictPods, threshold }: PluginAnswers): ConditionAnswer[] {
  const met = answerOf(threshold);
  const found = [answerOf(evictPods)?.condition, met?.metType === "none" ? null : met?.condition];
  const wanted = new Map<string, ConditionAnswer>();
  for (const condition of found) {
    if (!condition?.met) continue;
    const key = JSON.stringify([condition.target, condition.name]);
    const effects = [...(wanted.get(key)?.effects ?? []), ...condition.effects];
    wanted.set(key, { ...condition, effects });
  }
  return [...wanted.values()];
}

function causeOf({ threshold }: PluginAnswers, name: string): string | undefined {
  const met = answerOf(threshold);
  return met?.condition?.met && met.condition.name === name ? thresholdText(met.scope, met) : undefined;
}

/** What plugins want together, sorted. */
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

// Of too many conditions of one plugin, the oldest go: those that were wanted last are true now.
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
