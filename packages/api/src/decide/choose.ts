import { type RefusalReason, refusalReasons } from "../reasons/index.ts";
import type { AskedPod } from "./asks.ts";
import type { Ask, CandidateOutcome, Victim } from "./decision.ts";
import { evictionObstacles, limitText } from "./eligibility.ts";
import { longestGrace } from "./grace.ts";
import { LimitCounter } from "./limits.ts";
import { referenceTo } from "./pods.ts";
import type { EvictionPolicy } from "./policy.ts";
import { PressureGate } from "./pressure.ts";
import { differenceOf, rankOrder } from "./rank.ts";
import type { RefusalLog } from "./refusal-log.ts";
import type { EvictionsUnderWay } from "./release.ts";
import type { QueuedEviction } from "./state.ts";
import type { TriedLast } from "./tried-last.ts";

/** The decision about a requested pod, and the request that it is based on. */
export interface Verdict {
  outcome: CandidateOutcome;
  ask: Ask;
  why: string;
}

/** The input of `chooseVictims`. */
export interface ChoiceInput {
  asked: Iterable<AskedPod>;
  underWay: EvictionsUnderWay;
  /** Pods that are evicted only if no other pod can be. */
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
 * Selects the victims of a round. Pure, except that it adds to `refusals`.
 *
 * 1. Forced pods come first, then at most one soft pod, each kind in rank order, lowest first. Pods whose eviction
 *    failed recently come last within their kind.
 * 2. The limits per node, namespace and owner also count the pods selected so far.
 * 3. At most `policy.burst` pods are victims in one round. The others are queued, and the next round decides about them
 *    again.
 */
export function chooseVictims(input: ChoiceInput, refusals: RefusalLog): Choice {
  const log = new ChoiceLog(refusals);
  const compare = rankOrder(input.policy.ranking);
  const order = (asked: AskedPod) => Number(input.last.has(asked.pod.uid));
  const eligible = eligiblePods(input, log).sort(
    (a, b) => order(a) - order(b) || compare(rankable(a), rankable(b)),
  );
  const accepted = acceptedPods(eligible, input, log);
  const { burst } = input.policy;
  const count = burst < 0 ? accepted.length : burst;
  const waiting = accepted.slice(count);
  const victims = accepted.slice(0, count).map((asked, index) => victimOf(asked, index + 1, input.underWay));
  for (const victim of victims) {
    const ask = victim.asks[0]!;
    const request = ask.selectedBy === "ranking" ? "" : ` at the request of ${victim.plugin}`;
    log.verdicts.set(victim.uid, { outcome: "victim", ask, why: `evicted${request}: ${victim.reason}` });
  }
  for (const asked of waiting) log.refuse(asked, "overBurst", { outcome: "waiting" });
  return { victims, queue: queueOf(waiting, input), verdicts: log.verdicts };
}

/** Collects the verdict about each pod. */
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

// Returns the requested pods that can be evicted now, each with the requests that are not on hold.
function eligiblePods({ asked, underWay, policy, now }: ChoiceInput, log: ChoiceLog): AskedPod[] {
  const gate = new PressureGate(underWay, policy.cooldownMs, now);
  const obstacleOf = evictionObstacles(underWay);
  const eligible: AskedPod[] = [];
  for (const one of asked) {
    const { pod, asks } = one;
    const obstacle = obstacleOf(pod.uid);
    if (obstacle) {
      log.refuse(one, obstacle.reason, { why: obstacle.message });
      continue;
    }
    const free: Ask[] = [];
    // In reverse order, so that the verdict is that of the first request, which takes precedence.
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

// Returns the forced pods and at most one soft pod, in the order of their eviction, within the limits.
function acceptedPods(eligible: readonly AskedPod[], input: ChoiceInput, log: ChoiceLog): AskedPod[] {
  const limits = new LimitCounter(input.policy.limits, input.underWay.recent, input.now);
  const accepted: AskedPod[] = [];
  let soft: AskedPod | undefined;
  for (const asked of [...eligible.filter(isForced), ...eligible.filter((one) => !isForced(one))]) {
    if (soft !== undefined) {
      log.refuse(asked, "notLeastImportant", { why: whyNotThisOne(soft, asked, input) });
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

// The waiting pods replace the queue, in their order. A pod that was already queued keeps its time.
function queueOf(waiting: readonly AskedPod[], { queue, now }: ChoiceInput): QueuedEviction[] {
  const since = new Map(queue.map((queued) => [queued.uid, queued.since]));
  return waiting.map(({ pod }) => ({ ...referenceTo(pod), since: since.get(pod.uid) ?? now }));
}

function victimOf(
  { pod, asks }: AskedPod,
  order: number,
  underWay: Pick<EvictionsUnderWay, "sentBefore">,
): Victim {
  const { kind, plugin, scope, reason } = asks[0]!;
  // The grace periods of soft requests do not apply to a forced eviction.
  const counted = asks.filter((ask) => ask.kind === kind).map((ask) => ask.gracePeriodSeconds);
  const gracePeriodSeconds = longestGrace(counted, pod.gracePeriodSeconds);
  const sentBefore = underWay.sentBefore.has(pod.uid) ? { sentBefore: true } : {};
  return { ...referenceTo(pod), order, kind, plugin, scope, reason, gracePeriodSeconds, ...sentBefore, asks };
}

function whyNotThisOne(victim: AskedPod, other: AskedPod, { last, policy }: ChoiceInput): string {
  const { namespace, name } = victim.pod;
  if (last.has(other.pod.uid) && !last.has(victim.pod.uid))
    return `${namespace}/${name} is evicted first: ${refusalReasons.triedLast}`;
  const difference = differenceOf(policy.ranking, rankable(victim), rankable(other));
  return `ranked higher than ${namespace}/${name}: ${difference}; at most one soft eviction per round`;
}

function rankable({ pod, asks }: AskedPod) {
  return { pod, scope: asks[0]!.scope };
}
