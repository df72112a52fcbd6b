import type { PluginCondition } from "./state.ts";

/** A condition that was set or cleared. */
export interface ConditionChange {
  kind: "set" | "cleared";
  condition: PluginCondition;
}

/** Returns the conditions set and cleared between two rounds: first those set, both in the order of their list. */
export function conditionChanges(
  before: readonly PluginCondition[],
  after: readonly PluginCondition[],
): ConditionChange[] {
  const [known, left] = [new Set(before.map(idOf)), new Set(after.map(idOf))];
  return [
    ...after.filter((one) => !known.has(idOf(one))).map((condition) => ({ kind: "set" as const, condition })),
    ...before
      .filter((one) => !left.has(idOf(one)))
      .map((condition) => ({ kind: "cleared" as const, condition })),
  ];
}

/** For example "condition DiskHot set: ts-evict reports disk 95 > threshold 90". */
export function conditionChangeText({ kind, condition }: ConditionChange): string {
  const { name, plugin } = condition;
  const last = condition.cause === undefined ? "" : `; last: ${condition.cause}`;
  return kind === "set"
    ? `condition ${name} set: ${causeText(condition)}`
    : `condition ${name} cleared: ${plugin} has not reported it for its transition period${last}`;
}

/** For example "ts-evict reports disk 95 > threshold 90", or "py-evict reports it" if the plugin sent no values. */
export function causeText({ plugin, cause = "it" }: Pick<PluginCondition, "plugin" | "cause">): string {
  return `${plugin} reports ${cause}`;
}

function idOf({ plugin, target, name, effects }: PluginCondition): string {
  return JSON.stringify([plugin, target, name, effects]);
}
