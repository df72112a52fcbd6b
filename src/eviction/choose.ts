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
  const fates = new Map<string, Fate>();
  const refuse = ({ pod, asks }: AskedPod, reason: RefusalReason, detail?: string) => {
    const ask = asks[0]!;
    refusals.add(ask.plugin, pod, reason, detail);
    fates.set(pod.uid, { outcome: "refused", ask, why: detail ?? refusalReasons[reason] });
  };

  const eligible = eligiblePods(input, refusals, refuse).sort((a, b) =>
    compareImportance(rankable(a), rankable(b)),
  );
  const limits = new LimitCounter(input.policy.limits, input.underWay.recent, input.now);
  const accepted: AskedPod[] = [];
  let soft: AskedPod | undefined;
  const forced = eligible.filter((asked) => asked.asks[0]!.kind === "forced");
  const softOnes = eligible.filter((asked) => asked.asks[0]!.kind === "soft");
  for (const asked of [...forced, ...softOnes]) {
    if (soft !== undefined) {
      refuse(asked, "notLeastImportant", whySpared(soft, asked));
      continue;
    }
    const limit = limits.forbids(asked.pod);
    if (limit !== null) {
      refuse(asked, limit);
      continue;
    }
    limits.count(asked.pod);
    accepted.push(asked);
    if (asked.asks[0]!.kind === "soft") soft = asked;
  }

  const { popped, left } = popQueue(queueOf(accepted, input), input.policy.burst);
  const byUid = new Map(accepted.map((asked) => [asked.pod.uid, asked]));
  const victims = popped.map(({ uid }, index) => victimOf(byUid.get(uid)!, index + 1));
  for (const { uid, order, reason, plugin } of victims) {
    const ask = byUid.get(uid)!.asks[0]!;
    fates.set(uid, { outcome: "victim", ask, why: `goes as number ${order}, for ${plugin}: ${reason}` });
  }
  for (const { uid } of left) {
    const asked = byUid.get(uid)!;
    refuse(asked, "overBurst");
    fates.set(uid, { outcome: "waiting", ask: asked.asks[0]!, why: refusalReasons.overBurst });
  }
  return { victims, queue: left, fates };
}

// Drops wishes that have to wait, and pods that have none left.
function eligiblePods(
  { asked, underWay, policy, now }: ChoiceInput,
  refusals: RefusalLog,
  refuse: (asked: AskedPod, reason: RefusalReason, detail?: string) => void,
): AskedPod[] {
  const gate = new PressureGate(underWay, policy.cooldownMs, now);
  const pending = new Set(underWay.pending.map((pod) => pod.uid));
  const paused = new Map(underWay.paused.map((pod) => [pod.uid, pod.reason]));
  const eligible: AskedPod[] = [];
  for (const one of asked) {
    const { pod, asks } = one;
    const failure = paused.get(pod.uid);
    if (pending.has(pod.uid)) {
      refuse(one, "pending");
      continue;
    }
    if (failure !== undefined) {
      refuse(one, "paused", `${refusalReasons.paused}: ${failure}`);
      continue;
    }
    const held = asks.map(
      (ask) => gate.holds(ask) ?? (pod.softEvictNotify && ask.kind === "soft" ? "notifyOnly" : null),
    );
    const free = asks.filter((_, index) => held[index] === null);
    if (free.length > 0) {
      eligible.push({ pod, asks: free });
      for (const [index, reason] of held.entries()) {
        if (reason !== null) refusals.add(asks[index]!.plugin, pod, reason);
      }
      continue;
    }
    refuse(one, held[0]!);
    for (const [index, reason] of held.entries()) {
      if (index > 0) refusals.add(asks[index]!.plugin, pod, reason!);
    }
  }
  return eligible;
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
