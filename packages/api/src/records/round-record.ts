import {
  type DecideInput,
  type Decision,
  type EvictionOutcome,
  type EvictionPolicy,
  type EvictionState,
  emptyEvictionState,
  type PendingEviction,
  type Withdrawal,
} from "../decide/index.ts";
import type { roundRecord, ValueOf } from "../openapi/index.ts";

/** A recorded round: its complete input and its decision, as plain JSON. */
export type RoundRecord = ValueOf<typeof roundRecord>;

/**
 * Returns whether a round is recorded: a threshold was met, a pod was requested, an eviction ended, or conditions
 * changed.
 */
export function isWorthKeeping(input: DecideInput, decision: Decision): boolean {
  const { victims, dryRunVictims, refusals, withdrawals, thresholds } = decision;
  if ([victims, dryRunVictims, refusals, withdrawals, thresholds].some((list) => list.length > 0))
    return true;
  if (input.outcomes.length > 0) return true;
  return conditionNames(decision.state.conditions) !== conditionNames(input.state.conditions);
}

/**
 * Returns a comparison key for a round in which all met thresholds are confirmed and no pod is requested; undefined for
 * any other round. Such rounds may repeat for days: a round with the key of the previous one is not recorded.
 */
export function idleRound(input: DecideInput, decision: Decision): string | undefined {
  const { victims, dryRunVictims, refusals, withdrawals, thresholds, failures } = decision;
  const isQuiet = [victims, dryRunVictims, refusals, withdrawals, input.outcomes].every(
    (list) => list.length === 0,
  );
  if (!isQuiet || thresholds.length === 0 || thresholds.some(({ confirmed }) => !confirmed)) return undefined;
  const met = thresholds.map(({ plugin, scope, metType, held, unserved }) => {
    return [plugin, scope, metType, held?.reason, unserved?.reason];
  });
  const failed = failures.map(({ plugin, call, failure }) => [plugin, call, failure]);
  return JSON.stringify([met, failed, conditionNames(decision.state.conditions)]);
}

function conditionNames(conditions: Decision["state"]["conditions"]): string {
  return JSON.stringify(
    conditions.map(({ plugin, target, name, effects }) => [plugin, target, name, effects]),
  );
}

// Defaults for missing fields of a recorded policy. They are fixed, so that records keep their meaning when defaults
// change.
const absentPolicy: Readonly<EvictionPolicy> = {
  burst: 3,
  // Earlier versions had only this order.
  ranking: ["qosLevel", "qosClass", "priority", "scope"],
  dryRunPlugins: [],
  fallbackPlugins: ["*"],
  conditionTransitionPeriodMs: 5 * 60_000,
  taintPrefix: "nodekeeper.dev",
  taintEffects: ["NoSchedule", "PreferNoSchedule"],
  cooldownMs: 30_000,
  releaseMarginMs: 30_000,
  longestReleaseMs: 10 * 60_000,
  failedEvictionPauseMs: 60_000,
  forgetPluginAfterMs: 5 * 60_000,
  limits: { windowMs: 10 * 60_000, perNode: 10, perNamespace: null, perOwner: 2 },
  skip: { labelKeys: [], annotationKeys: [], evictDaemonSetPods: false },
  grace: { shortestSeconds: 10, longestSeconds: 3600, allowZero: false },
};
// Fields that earlier versions recorded under another name.
const earlierNames = {
  conditionTransitionPeriodMs: "conditionTransitionMs",
  forgetPluginAfterMs: "forgetPluginMs",
} as const satisfies Partial<Record<keyof EvictionPolicy, string>>;
// Values that earlier versions recorded under another name, with their current names.
const earlierResults: Readonly<Record<string, EvictionOutcome["result"]>> = { gone: "terminated" };
const earlierStages: Readonly<Record<string, Withdrawal["stage"]>> = { begun: "started" };
const unlimited = { perNode: null, perNamespace: null, perOwner: null };
const anyGrace = { shortestSeconds: 0 };

/**
 * Converts a record of any version to the current one: missing fields get the values that applied at that time; renamed
 * fields and values get their current names. A current record is unchanged.
 */
export function readRecord(record: RoundRecord): RoundRecord {
  const { input, decision } = record;
  const { state, policy, outcomes } = input;
  const limits = { ...unlimited, ...policy.limits };
  const grace = { ...anyGrace, ...policy.grace };
  return {
    ...record,
    input: {
      ...input,
      outcomes: outcomes.map((outcome) => ({ ...outcome, result: resultOf(outcome) })),
      state: readState(state),
      policy: { ...absentPolicy, ...withEarlierNames(policy), limits, grace },
    },
    decision: {
      ...decision,
      state: readState(decision.state),
      resumed: (decision.resumed ?? []).map(readPending),
      withdrawals: decision.withdrawals.map((one) => ({ ...one, stage: newerOf(earlierStages, one.stage) })),
    },
  };
}

// Before state version 2, `terminated` was also the outcome of a pod that ended before its eviction was sent.
function resultOf({ result: recorded, sent }: EvictionOutcome): EvictionOutcome["result"] {
  const result = newerOf(earlierResults, recorded);
  return result === "terminated" && sent === false ? "superseded" : result;
}

function readState(recorded: EvictionState): EvictionState {
  const state = { ...emptyEvictionState(), ...recorded };
  const { pending, interrupted } = state;
  return { ...state, pending: pending.map(readPending), interrupted: interrupted.map(readPending) };
}

// Before state version 2, records do not show whether a request was about to be sent. It may have been sent since the
// decision.
function readPending(pod: PendingEviction): PendingEviction {
  const { acceptedAt = null, deadline = null, sendingAt = acceptedAt ?? pod.since } = pod;
  return { ...pod, sendingAt, acceptedAt, deadline };
}

function newerOf<Value extends string>(earlier: Readonly<Record<string, Value>>, value: Value): Value {
  return earlier[value] ?? value;
}

function withEarlierNames(recorded: EvictionPolicy): EvictionPolicy {
  const policy: Record<string, unknown> = { ...recorded };
  for (const [name, earlier] of Object.entries(earlierNames)) {
    if (!(earlier in policy)) continue;
    policy[name] ??= policy[earlier];
    delete policy[earlier];
  }
  return policy as unknown as EvictionPolicy;
}
