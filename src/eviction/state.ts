import type { ConditionAnswer, MetType } from "./answers.ts";
import type { PodReference } from "./pods.ts";

/** Soft: one of those that may go, and one a round is taken. Forced: has to go. */
export type EvictionKind = "soft" | "forced";

/** How long a threshold has been met without a break. Times are milliseconds since the epoch. */
export interface ThresholdTimer {
  plugin: string;
  scope: string;
  metType: Exclude<MetType, "none">;
  since: number;
  /** When the plugin was last registered. */
  lastSeen: number;
}

/** A condition one plugin wanted. */
export interface PluginCondition {
  plugin: string;
  target: ConditionAnswer["target"];
  name: string;
  effects: string[];
  since: number;
  /** When the plugin last said that it is met. */
  lastSeen: number;
}

/** A pod that was to go but did not fit the burst. */
export interface QueuedEviction extends PodReference {
  since: number;
}

/** A victim of an earlier round that may still be there. */
export interface PendingEviction extends PodReference {
  plugin: string;
  scope: string;
  kind: EvictionKind;
  /** Whether the plugin's threshold asked for it (GetTopEvictionPods), or the plugin by name (GetEvictPods). */
  source: AskSource;
  reason: string;
  /** As in the victim, so that a restarted agent can go on with it: seconds; null is the pod's own. */
  gracePeriodSeconds: number | null;
  since: number;
  /** Until then it counts as on its way out. */
  deadline: number;
}

export type AskSource = "threshold" | "evictPods";

/** An eviction that began, for limits and cooldown. */
export interface RecentEviction {
  uid: string;
  namespace: string;
  ownerUid: string | null;
  plugin: string;
  scope: string;
  at: number;
  /** When the pod was seen to be gone; null while it is not. */
  releasedAt: number | null;
}

/** A pod whose eviction failed, to be left alone for a while. */
export interface PausedPod {
  uid: string;
  until: number;
  /** Why its eviction failed. */
  reason: string;
}

/** Everything one round leaves for the next: plain JSON, each list in a fixed order. */
export interface EvictionState {
  /** When it was made, milliseconds since the epoch; null before the first round. */
  at: number | null;
  thresholds: ThresholdTimer[];
  conditions: PluginCondition[];
  queue: QueuedEviction[];
  pending: PendingEviction[];
  recent: RecentEviction[];
  paused: PausedPod[];
}

/** The state before the first round. */
export function emptyEvictionState(): EvictionState {
  return { at: null, thresholds: [], conditions: [], queue: [], pending: [], recent: [], paused: [] };
}

/**
 * The state with all its times moved, where the wall clock was set back since it was made: else a timer would stand
 * still, or a pause last, for as long as the clock jumped.
 */
export function followClock(state: EvictionState, now: number): EvictionState {
  if (state.at === null || state.at <= now) return state;
  return moved(state, now - state.at, now);
}

/**
 * A stored state made ready for a restarted agent. The time it was away counts for nothing: conditions get their whole
 * transition period for their plugins to come back, and a threshold's grace timer does not run while nobody looks.
 * Victims keep their deadlines: after a long time away, plugins' fresh answers choose anew.
 */
export function resumeState(state: EvictionState, now: number): EvictionState {
  const away = state.at === null ? 0 : now - state.at;
  if (away < 0) return followClock(state, now);
  return {
    ...state,
    at: now,
    conditions: state.conditions.map((condition) => ({ ...condition, lastSeen: now })),
    thresholds: state.thresholds.map((timer) => ({ ...timer, since: timer.since + away, lastSeen: now })),
  };
}

function moved(state: EvictionState, by: number, now: number): EvictionState {
  return {
    at: now,
    thresholds: state.thresholds.map((timer) => ({
      ...timer,
      since: timer.since + by,
      lastSeen: timer.lastSeen + by,
    })),
    conditions: state.conditions.map((condition) => ({
      ...condition,
      since: condition.since + by,
      lastSeen: condition.lastSeen + by,
    })),
    queue: state.queue.map((queued) => ({ ...queued, since: queued.since + by })),
    pending: state.pending.map((pod) => ({ ...pod, since: pod.since + by, deadline: pod.deadline + by })),
    recent: state.recent.map((eviction) => ({
      ...eviction,
      at: eviction.at + by,
      releasedAt: eviction.releasedAt === null ? null : eviction.releasedAt + by,
    })),
    paused: state.paused.map((pod) => ({ ...pod, until: pod.until + by })),
  };
}
