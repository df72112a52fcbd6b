import type { MetThreshold, Refusal } from "./decide/decision.ts";
import { LimitCounter, type LimitUse, type ReachedLimit } from "./decide/limits.ts";
import type { BudgetStatus } from "./decide/outcome.ts";
import { type EvictionPod, type PodOwner, type PodReference, referenceTo } from "./decide/pods.ts";
import type { EvictionPolicy } from "./decide/policy.ts";
import type { EvictionState, PausedPod, PendingEviction, QueuedEviction } from "./decide/state.ts";

/** What limits evictions now, and what they delay. Plain JSON; times are wall milliseconds. */
export interface EvictionBudgets {
  /** Of the last round; null before the first. */
  at: number | null;
  /** Most evictions started in a round; null for no limit. */
  burst: number | null;
  /** Limits count evictions within this time, milliseconds. */
  windowMs: number;
  node: LimitUse;
  /** Those with evictions in the window, the most used first, at most 200; as are owners. */
  namespaces: (LimitUse & { namespace: string })[];
  owners: (LimitUse & { namespace: string; owner: PodOwner })[];
  /** Pods whose eviction failed and is not retried yet, such as those that a PodDisruptionBudget protects. */
  paused: (PodReference & Pick<PausedPod, "until" | "reason"> & { budget: BudgetStatus | null })[];
  /** Pods that were selected beyond the burst. */
  queued: QueuedEviction[];
  /** Pods that the last round would have evicted but for a limit that is still reached, each once, at most 200. */
  limited: (PodReference & ReachedLimit & Pick<Refusal, "plugin">)[];
  pending: ShownPending[];
  /** Thresholds that were met in the last round. */
  thresholds: readonly MetThreshold[];
}

/** An eviction that has not ended. */
export interface ShownPending
  extends PodReference,
    Pick<
      PendingEviction,
      "plugin" | "scope" | "kind" | "reason" | "since" | "sendingAt" | "acceptedAt" | "deadline"
    > {
  /**
   * `sending`: not accepted by the API server yet. `terminating`: accepted. `interrupted`: decided before a restart of the
   * agent and not known to have been sent.
   */
  stage: "sending" | "terminating" | "interrupted";
}

export interface BudgetsInput {
  state: EvictionState;
  policy: EvictionPolicy;
  /** Those of the last round. */
  thresholds: readonly MetThreshold[];
  /** Those of the last round. */
  refusals: readonly Refusal[];
  /** The pods of the node. */
  pods: readonly EvictionPod[];
  /** A pod that was evicted, by its UID; undefined where it is not known any more. */
  formerPod: (uid: string) => Pick<EvictionPod, "owner"> | undefined;
  /** Wall milliseconds. */
  now: number;
}

const MOST_SHOWN = 200;
const limitReasons: ReadonlySet<string> = new Set(["nodeLimit", "namespaceLimit", "ownerLimit"]);

/** The budgets in force after the last round, by the policy of now. Pure. */
export function budgetsOf(input: BudgetsInput): EvictionBudgets {
  const { state, policy, thresholds, pods, now } = input;
  const { limits, burst } = policy;
  const counter = new LimitCounter(limits, state.recent, now);
  const { node, namespaces, owners } = counter.uses();
  const byUid = new Map(pods.map((pod) => [pod.uid, pod]));
  const ownerOf = owningPods(input);
  return {
    at: state.at,
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
      ...state.pending.map((one) => shownPending(one, one.deadline === null ? "sending" : "terminating")),
    ],
    thresholds,
  };
}

// By the limits of now: a refusal is over with the limit's window, before the next round.
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

// The owner of an evicted pod is known from its siblings, or from the history of the pod itself.
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

function shownPending(eviction: PendingEviction, stage: ShownPending["stage"]): ShownPending {
  const { plugin, scope, kind, reason, since, sendingAt, acceptedAt, deadline } = eviction;
  const progress = { since, stage, sendingAt, acceptedAt, deadline };
  return { ...referenceTo(eviction), plugin, scope, kind, reason, ...progress };
}
