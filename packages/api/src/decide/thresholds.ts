import { compareText } from "../text/index.ts";
import { answerOf, type ThresholdAnswer } from "./answers.ts";
import type { MetThreshold } from "./decision.ts";
import type { RoundInput } from "./round.ts";
import type { ThresholdTimer } from "./state.ts";

/** The grace timers after a round, and the thresholds met in it. */
export interface ThresholdProgress {
  timers: ThresholdTimer[];
  met: MetThreshold[];
}

// A scope that is reported again within this time, or within its grace period if that is longer, keeps its timer.
// Milliseconds.
const RECURS_WITHIN_MS = 5 * 60_000;
// Upper bound of timers per plugin and met type.
const MAX_SCOPES = 8;

/**
 * Computes the grace timers after a round, like kubelet's thresholdsFirstObservedAt
 * (`pkg/kubelet/eviction/helpers.go`). Pure. A timer belongs to a plugin, a scope and a met type.
 *
 * 1. A scope that is reported for the first time, or that changes from soft to hard, starts a new timer.
 * 2. Timers of other scopes continue while the plugin reports any threshold of that type: an answer has only one scope,
 *    so a plugin that alternates between two scopes has met both.
 * 3. If a plugin has `MAX_SCOPES` timers, a new scope takes over the timer of the scope reported longest ago, so that a
 *    plugin that reports a new scope each round is still confirmed.
 * 4. Timers are kept if the plugin's call fails, and for `forgetPluginAfterMs` after it disconnected.
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
      timers.push(...before.map((timer) => ({ ...timer, reportedAt: now, lastSeen: now })));
      continue;
    }
    if (answer.metType === "none") continue;
    const running = runningTimers(plugin, answer, before, now);
    timers.push(...running);
    met.push(metThreshold(plugin, answer, running, now));
  }
  for (const timer of input.state.thresholds) {
    const isDisconnected = !registered.has(timer.plugin);
    if (isDisconnected && now - timer.lastSeen < policy.forgetPluginAfterMs) timers.push(timer);
  }
  timers.sort(
    (a, b) =>
      compareText(a.plugin, b.plugin) || compareText(a.scope, b.scope) || compareText(a.metType, b.metType),
  );
  met.sort((a, b) => compareText(a.plugin, b.plugin));
  return { timers, met };
}

// A met hard threshold implies the soft one, so soft timers continue.
function runningTimers(
  plugin: string,
  answer: ThresholdAnswer,
  before: readonly ThresholdTimer[],
  now: number,
): ThresholdTimer[] {
  const running: ThresholdTimer["metType"][] = answer.metType === "hard" ? ["hard", "soft"] : ["soft"];
  return running.flatMap((metType) => {
    const known = before.filter((timer) => timer.metType === metType);
    const own = known.find(({ scope }) => scope === answer.scope) ?? longestAgo(known);
    const others = known.filter((timer) => timer !== own).map((timer) => ({ ...timer, lastSeen: now }));
    const since = own && isSamePressure(own, answer, now) ? own.since : now;
    return [...others, { plugin, scope: answer.scope, metType, since, reportedAt: now, lastSeen: now }];
  });
}

// Returns the timer that a new scope takes over; undefined if there are fewer than `MAX_SCOPES`.
function longestAgo(timers: readonly ThresholdTimer[]): ThresholdTimer | undefined {
  if (timers.length < MAX_SCOPES) return undefined;
  return [...timers].sort((a, b) => a.reportedAt - b.reportedAt || compareText(a.scope, b.scope))[0];
}

function isSamePressure(timer: ThresholdTimer, { scope, gracePeriodSeconds }: ThresholdAnswer, now: number) {
  const silence = now - timer.reportedAt;
  return timer.scope !== scope || silence <= Math.max(gracePeriodSeconds * 1000, RECURS_WITHIN_MS);
}

function metThreshold(
  plugin: string,
  answer: ThresholdAnswer,
  running: readonly ThresholdTimer[],
  now: number,
): MetThreshold {
  const { condition: _condition, candidateUids: _candidateUids, ...threshold } = answer;
  const { since } = running.find(
    ({ scope, metType }) => scope === answer.scope && metType === answer.metType,
  )!;
  const confirmed = now - since >= answer.gracePeriodSeconds * 1000;
  return { ...threshold, plugin, since, confirmed, held: null };
}
