import {
  type EvictionPod,
  type EvictionPolicy,
  type EvictionState,
  LimitCounter,
  type LimitUse,
  type MetThreshold,
  type PendingEviction,
  type PodOwner,
  type Refusal,
  referenceTo,
} from "@nodekeeper/api/decide";
import type { ApiAnswers } from "@nodekeeper/api/openapi";

/** The current limits of evictions, their use, and the evictions that they delay. */
export type EvictionBudgets = ApiAnswers["eviction/budgets"];

/** An eviction in progress. */
export type ShownPending = EvictionBudgets["pending"][number];

export interface BudgetsInput {
  state: EvictionState;
  /** Wall milliseconds; null before the first round since the agent's start. */
  lastRoundAt: number | null;
  policy: EvictionPolicy;
  /** Of the last round. */
  thresholds: readonly MetThreshold[];
  /** Of the last round. */
  refusals: readonly Refusal[];
  /** The pods of this node. */
  pods: readonly EvictionPod[];
  /** An evicted pod by its UID; undefined if it is no longer known. */
  formerPod: (uid: string) => Pick<EvictionPod, "owner"> | undefined;
  /** Wall milliseconds. */
  now: number;
}

const MOST_SHOWN = 200;
const limitReasons: ReadonlySet<string> = new Set(["nodeLimit", "namespaceLimit", "ownerLimit"]);

/** Returns the budgets after the last round, by the current policy. Pure. */
export function budgetsOf(input: BudgetsInput): EvictionBudgets {
  const { state, lastRoundAt, policy, thresholds, pods, now } = input;
  const { limits, burst } = policy;
  const counter = new LimitCounter(limits, state.recent, now);
  const { node, namespaces, owners } = counter.uses();
  const byUid = new Map(pods.map((pod) => [pod.uid, pod]));
  const ownerOf = owningPods(input);
  return {
    at: lastRoundAt,
    burst: burst < 0 ? null : burst,
    windowMs: limits.windowMs,
    node,
    namespaces: mostUsed([...namespaces].map(([namespace, use]) => ({ namespace, ...use }))),
    owners: mostUsed([...owners].map(([uid, use]) => ({ ...ownerOf(uid), ...use }))),
    paused: state.paused
      .filter(({ until }) => now < until)
      .flatMap(({ uid, until, reason, budget }) => {
        const pod = byUid.get(uid);
        return pod ? [{ ...referenceTo(pod), until, reason, budget }] : [];
      }),
    queued: state.queue,
    limited: limitedPods(input, byUid, counter),
    pending: [
      ...state.interrupted.map((one) => shownPending(one, "interrupted")),
      ...state.pending.map((one) => shownPending(one, stageOf(one))),
    ],
    thresholds: [...thresholds],
  };
}

// Uses the current time, because a refusal may expire with the window of its limit before the next round.
function limitedPods(
  { refusals }: BudgetsInput,
  byUid: ReadonlyMap<string, EvictionPod>,
  limits: LimitCounter,
): EvictionBudgets["limited"] {
  const refused = refusals.filter(({ reason }) => limitReasons.has(reason));
  const plugins = new Map(refused.map(({ uid, plugin }) => [uid, plugin]));
  return [...plugins]
    .flatMap(([uid, plugin]) => {
      const pod = byUid.get(uid);
      const limit = pod && limits.forbids(pod);
      return limit ? [{ ...referenceTo(pod), plugin, ...limit }] : [];
    })
    .slice(0, MOST_SHOWN);
}

// The owner of an evicted pod is known from other pods of the owner, or from the pod's history.
function owningPods({ state, pods, formerPod }: BudgetsInput) {
  const siblings = new Map(pods.flatMap(({ owner }) => (owner ? [[owner.uid, owner]] : [])));
  const evicted = new Map(state.recent.map((one) => [one.ownerUid, one]));
  return (ownerUid: string): { namespace: string; owner: PodOwner } => {
    const { namespace = "", uid = "" } = evicted.get(ownerUid) ?? {};
    const owner = siblings.get(ownerUid) ?? formerPod(uid)?.owner;
    return { namespace, owner: owner ?? { kind: "", name: "", uid: ownerUid } };
  };
}

function mostUsed<T extends LimitUse>(uses: T[]): T[] {
  return uses.sort((a, b) => b.used - a.used).slice(0, MOST_SHOWN);
}

function stageOf({ deadline, stopsContainers }: PendingEviction): ShownPending["stage"] {
  if (deadline === null) return "sending";
  return stopsContainers ? "stopping" : "terminating";
}

function shownPending(eviction: PendingEviction, stage: ShownPending["stage"]): ShownPending {
  const { plugin, scope, kind, reason, since, sendingAt, acceptedAt, deadline } = eviction;
  const progress = { since, stage, sendingAt, acceptedAt, deadline };
  return { ...referenceTo(eviction), plugin, scope, kind, reason, ...progress };
}
