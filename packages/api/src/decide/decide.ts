import { compareText } from "../text/index.ts";
import { type AskedPod, collectAsks } from "./asks.ts";
import { type Choice, type ChoiceInput, chooseVictims } from "./choose.ts";
import { advanceConditions } from "./conditions.ts";
import type { CallFailure, Decision, Notification } from "./decision.ts";
import { referenceTo } from "./pods.ts";
import { type EvictionPolicy, isDryRun } from "./policy.ts";
import { type PreparedRound, prepareRound } from "./prepare.ts";
import { rankCandidates } from "./ranking.ts";
import { RefusalLog } from "./refusal-log.ts";
import { startEvictions } from "./release.ts";
import type { DecideInput } from "./round.ts";
import { STATE_VERSION } from "./state.ts";
import { taintsOf } from "./taints.ts";
import { withUnserved } from "./unserved.ts";
import { findWithdrawals } from "./withdraw.ts";

/**
 * Decides one round. Pure.
 *
 * 1. The decision depends only on the input, not on the order of pods, plugins and answers.
 * 2. The input is not changed.
 * 3. No plugin answer makes it throw, however malformed.
 * @param prepared the result of `prepareRound` for the same input, if the caller already has it
 */
export function decide(input: DecideInput, prepared: PreparedRound = prepareRound(input)): Decision {
  const { now, policy, tops } = input;
  const { selection, eligibility, underWay } = prepared;
  const progress = advanceConditions(input);
  const { conditions, merged } = progress;
  const { taints, problems } = taintsOf(progress, policy);

  const refusals = new RefusalLog();
  const {
    asked: requested,
    unusable,
    passedOver,
    unserved,
  } = collectAsks(
    { plugins: input.plugins, tops, policy, prepared, unusable: input.state.unusable },
    refusals,
  );
  const asked = withoutDryRun(requested, policy, refusals);
  const choiceInput = { underWay, last: eligibility.last, queue: input.state.queue, policy, now };
  const choice = chooseVictims({ ...choiceInput, asked: asked.values() }, refusals);

  const withdrawals = findWithdrawals({
    round: input,
    selection,
    asked,
    passedOver,
    underWay,
    accepted: new Set([...choice.victims, ...choice.queue].map((pod) => pod.uid)),
  });

  const thresholds = withUnserved(prepared, unserved, input);
  const podOf = (uid: string) => requested.get(uid)!.pod;
  return {
    victims: choice.victims,
    dryRunVictims: dryRunVictims(requested, asked, choice, choiceInput),
    ranking: rankCandidates(
      selection.candidates,
      { requested, passedOver, verdicts: choice.verdicts, ranking: policy.ranking },
      eligibility,
    ),
    exclusions: selection.exclusions,
    refusals: refusals.sorted(),
    refusalCounts: refusals.sortedCounts(),
    withdrawals,
    notifications: notificationsOf(asked.values()),
    resumed: underWay.resumed,
    thresholds,
    conditions: merged,
    taints,
    conditionProblems: problems,
    failures: failuresOf(input),
    state: {
      version: STATE_VERSION,
      at: now,
      boot: input.state.boot,
      thresholds: prepared.timers,
      conditions,
      queue: choice.queue,
      interrupted: [],
      unusable,
      unrecorded: [],
      unserved: thresholds.flatMap(({ plugin, unserved }) =>
        unserved ? [{ plugin, since: unserved.since }] : [],
      ),
      ...startEvictions(underWay, { victims: choice.victims, withdrawals }, podOf, now),
    },
  };
}

// Drops the requests of plugins in dry run and adds a refusal for each.
function withoutDryRun(
  requested: ReadonlyMap<string, AskedPod>,
  policy: EvictionPolicy,
  refusals: RefusalLog,
): ReadonlyMap<string, AskedPod> {
  if (policy.dryRunPlugins.length === 0) return requested;
  const asked = new Map<string, AskedPod>();
  for (const [uid, { pod, asks }] of requested) {
    const real = asks.filter((ask) => !isDryRun(policy, ask.plugin));
    for (const ask of asks) if (!real.includes(ask)) refusals.add(ask.plugin, pod, "dryRun");
    if (real.length > 0) asked.set(uid, { pod, asks: real });
  }
  return asked;
}

// Returns the additional victims that would be selected if no plugin were in dry run.
function dryRunVictims(
  requested: ReadonlyMap<string, AskedPod>,
  asked: ReadonlyMap<string, AskedPod>,
  { victims }: Choice,
  input: Omit<ChoiceInput, "asked">,
): Decision["dryRunVictims"] {
  if (asked === requested) return [];
  const real = new Set(victims.map((victim) => victim.uid));
  const all = chooseVictims({ ...input, asked: requested.values() }, new RefusalLog());
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
    if ("failure" in evictPods) failures.push({ plugin, call: "getEvictPods", ...evictPods });
    if ("failure" in threshold) failures.push({ plugin, call: "thresholdMet", ...threshold });
  }
  for (const { plugin, top } of tops) {
    if ("failure" in top) failures.push({ plugin, call: "getTopEvictionPods", ...top });
  }
  return failures.sort((a, b) => compareText(a.plugin, b.plugin) || compareText(a.call, b.call));
}
