import type { AskedPod } from "./asks.ts";
import type { Ask, CandidateOutcome, Victim } from "./decision.ts";
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

/** What became of an asked pod, and the wish that counted. */
export interface Fate {
  outcome: CandidateOutcome;
  ask: Ask;
  why: string;
}

/** What `chooseVictims` looks at. */
export interface ChoiceInput {
  asked: Iterable<AskedPod>;
  underWay: EvictionsUnderWay;
  queue: readonly QueuedEviction[];
  policy: EvictionPolicy;
  now: number;
}

export interface Choice {
  victims: Victim[];
  queue: QueuedEviction[];
  fates: Map<string, Fate>;
}

/**
 * Chooses who goes: all forced pods, the least important first, and after them the least important of the soft ones,
 * as far as limits and the burst let them. Who does not fit the burst waits, and is looked at anew in the next round.
 */
export function chooseVictims(input: ChoiceInput, refusals: RefusalLog): Choice {
  const book = new Book(refusals);
  const eligible = eligiblePods(input, book).sort((a, b) => compareImportance(rankable(a), rankable(b)));
  const accepted = acceptedPods(eligible, input, book);
  const { popped, left } = popQueue(queueOf(accepted, input), input.policy.burst);
  const byUid = new Map(accepted.map((asked) => [asked.pod.uid, asked]));
  const victims = popped.map(({ uid }, index) => victimOf(byUid.get(uid)!, index + 1));
  for (const victim of victims) {
    const why = `goes as number ${victim.order}, for ${victim.plugin}: ${victim.reason}`;
    book.fates.set(victim.uid, { outcome: "victim", ask: victim.asks[0]!, why });
  }
  for (const { uid } of left) book.refuse(byUid.get(uid)!, "overBurst", { outcome: "waiting" });
  return { victims, queue: left, fates: book.fates };
}

/** Writes down what becomes of whom. */
class Book {
  readonly fates = new Map<string, Fate>();
  readonly refusals: RefusalLog;

  constructor(refusals: RefusalLog) {
    this.refusals = refusals;
  }

  refuse(
    { pod, asks }: AskedPod,
    reason: RefusalReason,
    { why = refusalReasons[reason], outcome = "refused" }: Partial<Omit<Fate, "ask">> = {},
  ): void {
    const ask = asks[0]!;
    this.refusals.add(ask.plugin, pod, reason, why);
    this.fates.set(pod.uid, { outcome, ask, why });
  }
}

// Drops wishes that have to wait, and pods that have none left or are to be left alone.
function eligiblePods({ asked, underWay, policy, now }: ChoiceInput, book: Book): AskedPod[] {
  const gate = new PressureGate(underWay, policy.cooldownMs, now);
  const pending = new Set(underWay.pending.map((pod) => pod.uid));
  const paused = new Map(underWay.paused.map((pod) => [pod.uid, pod.reason]));
  const eligible: AskedPod[] = [];
  for (const one of asked) {
    const { pod, asks } = one;
    const failure = paused.get(pod.uid);
    if (pending.has(pod.uid)) {
      book.refuse(one, "pending");
      continue;
    }
    if (failure !== undefined) {
      book.refuse(one, "paused", { why: `${refusalReasons.paused}: ${failure}` });
      continue;
    }
    const free: Ask[] = [];
    // Backwards, so that of several refusals that of the wish that counts most is the pod's fate.
    for (const ask of asks.toReversed()) {
      const isForNotice = pod.softEvictNotify && ask.kind === "soft";
      const reason = gate.holds(ask) ?? (isForNotice ? "notifyOnly" : null);
      if (reason === null) free.unshift(ask);
      else book.refuse({ pod, asks: [ask] }, reason);
    }
    if (free.length > 0) eligible.push({ pod, asks: free });
  }
  return eligible;
}

// All forced pods and one soft one, in the order in which they go, as far as limits let them.
function acceptedPods(eligible: readonly AskedPod[], input: ChoiceInput, book: Book): AskedPod[] {
  const limits = new LimitCounter(input.policy.limits, input.underWay.recent, input.now);
  const accepted: AskedPod[] = [];
  let soft: AskedPod | undefined;
  for (const asked of [...eligible.filter(isForced), ...eligible.filter((one) => !isForced(one))]) {
    if (soft !== undefined) {
      book.refuse(asked, "notLeastImportant", { why: whySpared(soft, asked) });
      continue;
    }
    const limit = limits.forbids(asked.pod);
    if (limit !== null) {
      book.refuse(asked, limit);
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

// The round's list overrides the queue: its order is the new one, and who waits longer than this round keeps since when.
function queueOf(accepted: readonly AskedPod[], { queue, now }: ChoiceInput): QueuedEviction[] {
  const since = new Map(queue.map((queued) => [queued.uid, queued.since]));
  const batch = accepted.map(({ pod }) => ({ ...referenceTo(pod), since: since.get(pod.uid) ?? now }));
  return addToQueue(queue, batch, { override: true });
}

function victimOf({ pod, asks }: AskedPod, order: number): Victim {
  const { kind, plugin, scope, reason } = asks[0]!;
  // A wish that only allows the eviction has no say in how one that forces it is done.
  const counted = asks.filter((ask) => ask.kind === kind).map((ask) => ask.gracePeriodSeconds);
  const gracePeriodSeconds = gentlestGrace(counted, pod.gracePeriodSeconds);
  return { ...referenceTo(pod), order, kind, plugin, scope, reason, gracePeriodSeconds, asks };
}

function whySpared(victim: AskedPod, spared: AskedPod): string {
  const { namespace, name } = victim.pod;
  return `${namespace}/${name} is less important: ${differenceOf(rankable(victim), rankable(spared))}`;
}

function rankable({ pod, asks }: AskedPod) {
  return { pod, scope: asks[0]!.scope };
}
