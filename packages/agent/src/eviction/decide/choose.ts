import type { AskedPod } from "./asks.ts";
import type { Ask, CandidateOutcome, Victim } from "./decision.ts";
import { limitText, pausedText } from "./eligibility.ts";
import { gentlestGrace } from "./grace.ts";
import { LimitCounter } from "./limits.ts";
import { referenceTo } from "./pods.ts";
import type { EvictionPolicy } from "./policy.ts";
import { PressureGate } from "./pressure.ts";
import { addToQueue, popQueue } from "./queue.ts";
import { compareImportance, differenceOf } from "./rank.ts";
import type { RefusalLog } from "./refusal-log.ts";
import { type RefusalReason, refusalReasons } from "./refusals.ts";
import type { EvictionsUnderWay } from "./release.ts";
import type { QueuedEviction } from "./state.ts";
import { type TriedLast, triedLastText } from "./tried-last.ts";

/** What was decided about a requested pod, and the request that counted. */
export interface Verdict {
  outcome: CandidateOutcome;
  ask: Ask;
  why: string;
}

/** What `chooseVictims` looks at. */
export interface ChoiceInput {
  asked: Iterable<AskedPod>;
  underWay: EvictionsUnderWay;
  /** Pods that are evicted only when no other can be. */
  last: TriedLast;
  queue: readonly QueuedEviction[];
  policy: EvictionPolicy;
  now: number;
}

export interface Choice {
  victims: Victim[];
  queue: QueuedEviction[];
  verdicts: Map<string, Verdict>;
}

/**
 * Chooses the victims: all forced pods, the least important first, and after them the least important of the soft ones,
 * as far as limits and the burst allow; of each kind, pods whose eviction failed lately come last. A pod beyond the
 * burst waits, and is decided again in the next round.
 */
export function chooseVictims(input: ChoiceInput, refusals: RefusalLog): Choice {
  const log = new ChoiceLog(refusals);
  const order = (asked: AskedPod) => Number(input.last.has(asked.pod.uid));
  const eligible = eligiblePods(input, log).sort(
    (a, b) => order(a) - order(b) || compareImportance(rankable(a), rankable(b)),
  );
  const accepted = acceptedPods(eligible, input, log);
  const { popped, left } = popQueue(queueOf(accepted, input), input.policy.burst);
  const byUid = new Map(accepted.map((asked) => [asked.pod.uid, asked]));
  const victims = popped.map(({ uid }, index) => victimOf(byUid.get(uid)!, index + 1));
  for (const victim of victims) {
    const why = `evicted at the request of ${victim.plugin}: ${victim.reason}`;
    log.verdicts.set(victim.uid, { outcome: "victim", ask: victim.asks[0]!, why });
  }
  for (const { uid } of left) log.refuse(byUid.get(uid)!, "overBurst", { outcome: "waiting" });
  return { victims, queue: left, verdicts: log.verdicts };
}

/** Collects what is decided about each pod. */
class ChoiceLog {
  readonly verdicts = new Map<string, Verdict>();
  readonly refusals: RefusalLog;

  constructor(refusals: RefusalLog) {
    this.refusals = refusals;
  }

  refuse(
    { pod, asks }: AskedPod,
    reason: RefusalReason,
    { why = refusalReasons[reason], outcome = "refused" }: Partial<Omit<Verdict, "ask">> = {},
  ): void {
    const ask = asks[0]!;
    this.refusals.add(ask.plugin, pod, reason, why);
    this.verdicts.set(pod.uid, { outcome, ask, why });
  }
}

// Drops requests that have to wait, and pods that have none left or can't be evicted now.
function eligiblePods({ asked, underWay, policy, now }: ChoiceInput, log: ChoiceLog): AskedPod[] {
  const gate = new PressureGate(underWay, policy.cooldownMs, now);
  const pending = new Set(underWay.pending.map((pod) => pod.uid));
  const paused = new Map(underWay.paused.map((pod) => [pod.uid, pod]));
  const eligible: AskedPod[] = [];
  for (const one of asked) {
    const { pod, asks } = one;
    const failure = paused.get(pod.uid);
    if (pending.has(pod.uid)) {
      log.refuse(one, "pending");
      continue;
    }
    if (failure !== undefined) {
      log.refuse(one, "paused", { why: pausedText(failure) });
      continue;
    }
    const free: Ask[] = [];
    // Backwards, so that of several refusals that of the request that counts most is the pod's verdict.
    for (const ask of asks.toReversed()) {
      const isForNotice = pod.softEvictNotify && ask.kind === "soft";
      const reason = gate.holds(ask)?.reason ?? (isForNotice ? "notifyOnly" : null);
      if (reason === null) free.unshift(ask);
      else log.refuse({ pod, asks: [ask] }, reason);
    }
    if (free.length > 0) eligible.push({ pod, asks: free });
  }
  return eligible;
}

// All forced pods and one soft one, in the order of their eviction, as far as limits allow.
function acceptedPods(eligible: readonly AskedPod[], input: ChoiceInput, log: ChoiceLog): AskedPod[] {
  const limits = new LimitCounter(input.policy.limits, input.underWay.recent, input.now);
  const accepted: AskedPod[] = [];
  let soft: AskedPod | undefined;
  for (const asked of [...eligible.filter(isForced), ...eligible.filter((one) => !isForced(one))]) {
    if (soft !== undefined) {
      log.refuse(asked, "notLeastImportant", { why: whyNotThisOne(soft, asked, input.last) });
      continue;
    }
    const limit = limits.forbids(asked.pod);
    if (limit !== null) {
      log.refuse(asked, limit.reason, { why: limitText(limit) });
      continue;
    }
    limits.count(asked.pod);
    accepted.push(asked);
    if (!isForced(asked)) soft = asked;
  }
  return accepted;
}

function isForced({ asks }: AskedPod): boolean {
  return asks[0]!.kind === "forced";
}

// The round's list overrides the queue: its order is the new one, and a pod that waited already keeps since when.
function queueOf(accepted: readonly AskedPod[], { queue, now }: ChoiceInput): QueuedEviction[] {
  const since = new Map(queue.map((queued) => [queued.uid, queued.since]));
  const batch = accepted.map(({ pod }) => ({ ...referenceTo(pod), since: since.get(pod.uid) ?? now }));
  return addToQueue(queue, batch, { override: true });
}

function victimOf({ pod, asks }: AskedPod, order: number): Victim {
  const { kind, plugin, scope, reason } = asks[0]!;
  // A request that only allows the eviction has no say in how one that forces it is done.
  const counted = asks.filter((ask) => ask.kind === kind).map((ask) => ask.gracePeriodSeconds);
  const gracePeriodSeconds = gentlestGrace(counted, pod.gracePeriodSeconds);
  return { ...referenceTo(pod), order, kind, plugin, scope, reason, gracePeriodSeconds, asks };
}

function whyNotThisOne(victim: AskedPod, other: AskedPod, last: TriedLast): string {
  const { namespace, name } = victim.pod;
  if (last.has(other.pod.uid) && !last.has(victim.pod.uid))
    return `${namespace}/${name} is evicted first: ${triedLastText}`;
  return `${namespace}/${name} is less important: ${differenceOf(rankable(victim), rankable(other))}`;
}

function rankable({ pod, asks }: AskedPod) {
  return { pod, scope: asks[0]!.scope };
}
