import type { ConditionAnswer, MetType } from "./answers.ts";
import type { BudgetStatus, EvictionOutcome } from "./outcome.ts";
import type { PodReference } from "./pods.ts";
import { compareText } from "./rank.ts";

/** `soft`: may be evicted, at most one pod per round. `forced`: must be evicted. katalyst's `EvictPod.force_evict`. */
export type EvictionKind = (typeof evictionKinds)[number];
export const evictionKinds = ["soft", "forced"] as const;

/** Since when a threshold has been met without interruption. Times are milliseconds since the epoch. */
export interface ThresholdTimer {
  plugin: string;
  scope: string;
  metType: Exclude<MetType, "none">;
  since: number;
  /** When the plugin last reported this scope as met. */
  reportedAt: number;
  /** When the plugin was last registered. */
  lastSeen: number;
}

/** A condition reported by one plugin. */
export interface PluginCondition {
  plugin: string;
  target: ConditionAnswer["target"];
  name: string;
  effects: string[];
  since: number;
  /** When the plugin last reported it as met. */
  lastSeen: number;
  /**
   * The values of the threshold when it was last met, for example "disk 95 > threshold 90". Undefined if the plugin
   * sent none.
   */
  cause?: string;
}

/** A pod selected beyond the burst of its round. */
export interface QueuedEviction extends PodReference {
  since: number;
}

/** A victim of an earlier round whose eviction has not ended. */
export interface PendingEviction extends PodReference {
  plugin: string;
  scope: string;
  kind: EvictionKind;
  /** Whether the plugin requested it by its threshold (GetTopEvictionPods) or by name (GetEvictPods). */
  source: AskSource;
  reason: string;
  /** Other pressures that requested the same pod and are on hold until it is deleted; undefined if there are none. */
  others?: Pressure[];
  /** Seconds, as in the victim; null for the pod's own grace period. */
  gracePeriodSeconds: number | null;
  /** The time of the decision. */
  since: number;
  /** When the first request was about to be sent, stored before the call; null if none was sent. */
  sendingAt: number | null;
  /** When the API server or the container runtime accepted it; null before that. */
  acceptedAt: number | null;
  /**
   * When the pod must be deleted: after its grace period and the release margin. Set at the acceptance, or when the pod
   * is found terminating; null before that.
   */
  deadline: number | null;
  /** Whether the container runtime accepted it, so that the pod is not deleted. Undefined means false. */
  stopsContainers?: boolean;
  /** Whether the outcome `overdue` is recorded. Undefined means false. */
  isOverdue?: boolean;
}

export type AskSource = "threshold" | "evictPods";

/** The origin of requests: a plugin's threshold with its scope, or requests of the plugin by name. */
export interface Pressure {
  plugin: string;
  scope: string;
  source: AskSource;
}

/** An eviction that counts for limits and cooldown: it was sent, or may have been. */
export interface RecentEviction {
  uid: string;
  namespace: string;
  ownerUid: string | null;
  plugin: string;
  scope: string;
  /** As in the pending eviction. */
  others?: Pressure[];
  at: number;
  /** When the pod was deleted or its deadline passed; null before that. */
  releasedAt: number | null;
}

/**
 * A pod whose eviction failed. It is not retried before `until`, and for some time after that only if no other pod can
 * be evicted.
 */
export interface PausedPod {
  uid: string;
  until: number;
  reason: string;
  /** The PodDisruptionBudget that refused it; null if none did. */
  budget: BudgetStatus | null;
}

/** The number of consecutive rounds in which a plugin with a hard threshold named only pods that can't be evicted. */
export interface UnusableAnswers {
  plugin: string;
  /** The scope of the threshold in these rounds; undefined in states of earlier versions. */
  scope?: string;
  rounds: number;
}

/** A plugin with a confirmed hard threshold for which no pod may be selected; see `UnservedThreshold`. */
export interface UnservedPlugin {
  plugin: string;
  since: number;
}

/** The version of the stored state that this code writes. */
export const STATE_VERSION = 2;

/** The state between rounds: plain JSON, each list in a fixed order. Stored in the state database. */
export interface EvictionState {
  version: number;
  /**
   * When the state was computed, milliseconds since the epoch; null before the first round. Its other times refer to
   * this clock.
   */
  at: number | null;
  /** Boot ID and uptime of the machine at that time; null if unknown. */
  boot: { id: string; uptimeMs: number } | null;
  thresholds: ThresholdTimer[];
  conditions: PluginCondition[];
  queue: QueuedEviction[];
  pending: PendingEviction[];
  /** Evictions decided before a restart of the agent that are not known to have been accepted. */
  interrupted: PendingEviction[];
  recent: RecentEviction[];
  paused: PausedPod[];
  unusable: UnusableAnswers[];
  /** Outcomes that were known when the agent stopped and that no round has recorded yet. */
  unrecorded: EvictionOutcome[];
  unserved: UnservedPlugin[];
}

/** Returns the state before the first round. */
export function emptyEvictionState(): EvictionState {
  return {
    version: STATE_VERSION,
    at: null,
    boot: null,
    thresholds: [],
    conditions: [],
    queue: [],
    pending: [],
    interrupted: [],
    recent: [],
    paused: [],
    unusable: [],
    unrecorded: [],
    unserved: [],
  };
}

/**
 * Returns the state at `now`, `elapsedMs` after it was computed. Moves all its times by the step of the wall clock in
 * between, so that a step neither confirms a threshold nor ends a pause. Pure.
 */
export function stateAt(state: EvictionState, now: number, elapsedMs: number): EvictionState {
  if (state.at === null) return state;
  const by = now - state.at - elapsedMs;
  return by === 0 ? { ...state, at: now } : moved(state, by, now);
}

/**
 * Prepares a stored state for a restarted agent. Pure.
 *
 * 1. Grace timers, and the time since when no pod may be selected, are paused while the agent is not running.
 *    Transition periods start again.
 * 2. Pauses, limits, cooldowns and deadlines advance by `elapsedMs`.
 * 3. Evictions that are not known to have been accepted are moved to `interrupted`: see `interruptedOutcomes`.
 * @param elapsedMs the verified time since the state was computed: see `elapsedSince`
 */
export function resumeState(stored: EvictionState, now: number, elapsedMs: number): EvictionState {
  const state = stateAt(stored, now, elapsedMs);
  if (state.at === null) return state;
  const [pending, interrupted] = [state.pending, [...state.interrupted]];
  interrupted.push(...pending.filter(({ acceptedAt }) => acceptedAt === null));
  return {
    ...state,
    at: now,
    conditions: state.conditions.map((condition) => ({ ...condition, lastSeen: now })),
    thresholds: state.thresholds.map((timer) => ({
      ...timer,
      since: timer.since + elapsedMs,
      reportedAt: timer.reportedAt + elapsedMs,
      lastSeen: now,
    })),
    unserved: state.unserved.map((one) => ({ ...one, since: one.since + elapsedMs })),
    pending: pending.filter(({ acceptedAt }) => acceptedAt !== null),
    interrupted: interrupted.sort((a, b) => compareText(a.uid, b.uid)),
  };
}

/** Progress of an eviction between the round that decided it and its outcome, stored immediately. */
export interface EvictionProgress {
  uid: string;
  /**
   * - `sending`: the first request is about to be sent.
   * - `accepted`: a request was accepted.
   * - `followed`: the pod is terminating. Either the cause is not known to be a request of the agent, or `accepted` was
   *   already reported.
   */
  stage: "sending" | "accepted" | "followed";
  at: number;
  /** When the pod must be deleted; null for `sending`. */
  deadline: number | null;
  /** Whether the container runtime accepted it, so that the pod is not deleted. Undefined means false. */
  stopsContainers?: boolean;
}

/** Returns the state with the progress of its pending evictions. Times refer to the state's clock. Pure. */
export function withProgress(state: EvictionState, progress: readonly EvictionProgress[]): EvictionState {
  if (progress.length === 0) return state;
  const pending = new Map(state.pending.map((pod) => [pod.uid, pod]));
  for (const step of progress) {
    const pod = pending.get(step.uid);
    if (pod) pending.set(step.uid, advanced(pod, step));
  }
  return { ...state, pending: [...pending.values()] };
}

function advanced(pod: PendingEviction, { stage, at, deadline, stopsContainers }: EvictionProgress) {
  switch (stage) {
    case "sending":
      return { ...pod, sendingAt: pod.sendingAt ?? at };
    case "accepted":
      return { ...pod, acceptedAt: at, deadline, ...(stopsContainers ? { stopsContainers } : {}) };
    case "followed":
      return { ...pod, deadline };
  }
}

function moved(state: EvictionState, by: number, at: number): EvictionState {
  return {
    ...state,
    at,
    thresholds: state.thresholds.map((timer) => ({
      ...timer,
      since: timer.since + by,
      reportedAt: timer.reportedAt + by,
      lastSeen: timer.lastSeen + by,
    })),
    conditions: state.conditions.map((condition) => ({
      ...condition,
      since: condition.since + by,
      lastSeen: condition.lastSeen + by,
    })),
    queue: state.queue.map((queued) => ({ ...queued, since: queued.since + by })),
    pending: state.pending.map((pod) => movedEviction(pod, by)),
    interrupted: state.interrupted.map((pod) => movedEviction(pod, by)),
    recent: state.recent.map((eviction) => ({
      ...eviction,
      at: eviction.at + by,
      releasedAt: movedTime(eviction.releasedAt, by),
    })),
    paused: state.paused.map((pod) => ({ ...pod, until: pod.until + by })),
    unserved: state.unserved.map((one) => ({ ...one, since: one.since + by })),
  };
}

function movedEviction(pod: PendingEviction, by: number): PendingEviction {
  const { since, sendingAt, acceptedAt, deadline } = pod;
  return {
    ...pod,
    since: since + by,
    sendingAt: movedTime(sendingAt, by),
    acceptedAt: movedTime(acceptedAt, by),
    deadline: movedTime(deadline, by),
  };
}

function movedTime(time: number | null, by: number): number | null {
  return time === null ? null : time + by;
}
