import { answerOf, type ThresholdAnswer } from "./answers.ts";
import type { MetThreshold } from "./decision.ts";
import { compareText } from "./rank.ts";
import type { RoundInput } from "./round.ts";
import type { ThresholdTimer } from "./state.ts";

/** The grace timers after a round, and the thresholds met in it. */
export interface ThresholdProgress {
  timers: ThresholdTimer[];
  met: MetThreshold[];
}

/**
 * Moves the grace timers on. A timer belongs to a plugin, a scope and a met type: another scope or a step from soft
 * to hard starts anew, for the new thing has not been met before. A plugin that failed keeps its timers, and so does
 * one that is away for less than `forgetPluginMs`.
 */
export function advanceThresholds(
  input: Pick<RoundInput, "now" | "plugins" | "policy" | "state">,
): ThresholdProgress {
  const { now, policy } = input;
  const timers: ThresholdTimer[] = [];
  const met: MetThreshold[] = [];
  const registered = new Set<string>();
  for (const { plugin, threshold } of input.plugins) {
    registered.add(plugin);
    const before = input.state.thresholds.filter((timer) => timer.plugin === plugin);
    const answer = answerOf(threshold);
    if (answer === null) {
      timers.push(...before.map((timer) => ({ ...timer, lastSeen: now })));
      continue;
    }
    if (answer.metType === "none") continue;
    timers.push(...runningTimers(plugin, answer, before, now));
    met.push(metThreshold(plugin, answer, before, now));
  }
  for (const timer of input.state.thresholds) {
    const isAway = !registered.has(timer.plugin);
    if (isAway && now - timer.lastSeen < policy.forgetPluginMs) timers.push(timer);
  }
  timers.sort(
    (a, b) =>
      compareText(a.plugin, b.plugin) || compareText(a.scope, b.scope) || compareText(a.metType, b.metType),
  );
  met.sort((a, b) => compareText(a.plugin, b.plugin));
  return { timers, met };
}

// Whoever is over the hard threshold is over the soft one too, so that one's timer runs on.
function runningTimers(
  plugin: string,
  { metType, scope }: ThresholdAnswer,
  before: readonly ThresholdTimer[],
  now: number,
): ThresholdTimer[] {
  const running: ThresholdTimer["metType"][] = metType === "hard" ? ["hard", "soft"] : ["soft"];
  return running.map((type) => ({
    plugin,
    scope,
    metType: type,
    since: sinceOf(before, scope, type) ?? now,
    lastSeen: now,
  }));
}

function metThreshold(
  plugin: string,
  answer: ThresholdAnswer,
  before: readonly ThresholdTimer[],
  now: number,
): MetThreshold {
  const { condition: _condition, candidateUids: _candidateUids, ...threshold } = answer;
  const since = sinceOf(before, answer.scope, answer.metType) ?? now;
  const confirmed = now - since >= answer.gracePeriodSeconds * 1000;
  return { ...threshold, plugin, since, confirmed };
}

function sinceOf(before: readonly ThresholdTimer[], scope: string, metType: string): number | undefined {
  return before.find((timer) => timer.scope === scope && timer.metType === metType)?.since;
}
