import { type AskedPod, collectAsks } from "./asks.ts";
import { selectCandidates } from "./candidates.ts";
import { type Choice, type ChoiceInput, chooseVictims } from "./choose.ts";
import { advanceConditions } from "./conditions.ts";
import type { CallFailure, Decision, Notification } from "./decision.ts";
import { referenceTo } from "./pods.ts";
import { type EvictionPolicy, isDryRun } from "./policy.ts";
import { compareText } from "./rank.ts";
import { rankCandidates } from "./ranking.ts";
import { RefusalLog } from "./refusal-log.ts";
import { beginEvictions, settleEvictions } from "./release.ts";
import type { DecideInput } from "./round.ts";
import { followClock } from "./state.ts";
import { taintsOf } from "./taints.ts";
import { advanceThresholds } from "./thresholds.ts";
import { findWithdrawals } from "./withdraw.ts";

/**
 * One round's decision: a pure function of what was observed and answered, of the state before and the policy. The
 * order of pods, plugins and answers never matters. It changes nothing of its input and throws for no answer of a
 * plugin, however wrong.
 */
export function decide(input: DecideInput): Decision {
  const { now, policy, tops } = input;
  const round = { ...input, state: followClock(input.state, now) };
  const selection = selectCandidates(round.pods, round.nodeName, policy.skip);
  const { timers, met } = advanceThresholds(round);
  const { conditions, merged } = advanceConditions(round);
  const { taints, problems } = taintsOf(merged, policy.taintPrefix);
  const underWay = settleEvictions(round);

  const refusals = new RefusalLog();
  const sources = { plugins: round.plugins, tops, thresholds: met, selection, policy };
  const wished = collectAsks(sources, refusals);
  const asked = withoutDryRun(wished, policy, refusals);
  const choiceInput = { underWay, queue: round.state.queue, policy, now };
  const choice = chooseVictims({ ...choiceInput, asked: asked.values() }, refusals);

  const podOf = (uid: string) => wished.get(uid)!.pod;
  return {
    victims: choice.victims,
    dryRunVictims: dryRunVictims(wished, asked, choice, choiceInput),
    ranking: rankCandidates(selection.candidates, wished, choice.fates),
    exclusions: selection.exclusions,
    refusals: refusals.sorted(),
    refusalCounts: refusals.sortedCounts(),
    withdrawals: findWithdrawals({
      round,
      selection,
      asked,
      pending: underWay.pending,
      accepted: new Set([...choice.victims, ...choice.queue].map((pod) => pod.uid)),
    }),
    notifications: notificationsOf(asked.values()),
    thresholds: met,
    conditions: merged,
    taints,
    conditionProblems: problems,
    failures: failuresOf(input),
    state: {
      at: now,
      thresholds: timers,
      conditions,
      queue: choice.queue,
      ...beginEvictions(underWay, choice.victims, podOf, policy, now),
    },
  };
}

// Wishes of plugins in dry run end here, with a refusal each.
function withoutDryRun(
  wished: ReadonlyMap<string, AskedPod>,
  policy: EvictionPolicy,
  refusals: RefusalLog,
): ReadonlyMap<string, AskedPod> {
  if (policy.dryRunPlugins.length === 0) return wished;
  const asked = new Map<string, AskedPod>();
  for (const [uid, { pod, asks }] of wished) {
    const real = asks.filter((ask) => !isDryRun(policy, ask.plugin));
    for (const ask of asks) if (!real.includes(ask)) refusals.add(ask.plugin, pod, "dryRun");
    if (real.length > 0) asked.set(uid, { pod, asks: real });
  }
  return asked;
}

// The same choice with all wishes counted; what differs is what dry run holds back.
function dryRunVictims(
  wished: ReadonlyMap<string, AskedPod>,
  asked: ReadonlyMap<string, AskedPod>,
  { victims }: Choice,
  input: Omit<ChoiceInput, "asked">,
): Decision["dryRunVictims"] {
  if (asked === wished) return [];
  const real = new Set(victims.map((victim) => victim.uid));
  const all = chooseVictims({ ...input, asked: wished.values() }, new RefusalLog());
  return all.victims.filter((victim) => !real.has(victim.uid));
}

function notificationsOf(asked: Iterable<AskedPod>): Notification[] {
  const notifications: Notification[] = [];
  for (const { pod, asks } of asked) {
    if (!pod.softEvictNotify) continue;
    for (const { kind, plugin, reason } of asks) {
      if (kind === "soft") notifications.push({ ...referenceTo(pod), plugin, reason });
    }
  }
  return notifications.sort(
    (a, b) => compareText(a.uid, b.uid) || compareText(a.plugin, b.plugin) || compareText(a.reason, b.reason),
  );
}

function failuresOf({ plugins, tops }: DecideInput): CallFailure[] {
  const failures: CallFailure[] = [];
  for (const { plugin, evictPods, threshold } of plugins) {
    if ("failure" in evictPods) failures.push({ plugin, call: "getEvictPods", failure: evictPods.failure });
    if ("failure" in threshold) failures.push({ plugin, call: "thresholdMet", failure: threshold.failure });
  }
  for (const { plugin, top } of tops) {
    if ("failure" in top) failures.push({ plugin, call: "getTopEvictionPods", failure: top.failure });
  }
  return failures.sort((a, b) => compareText(a.plugin, b.plugin) || compareText(a.call, b.call));
}
