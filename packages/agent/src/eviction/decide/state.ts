import type { BootTime } from "@nodekeeper/core/lib";
import type { ConditionAnswer, MetType } from "./answers.ts";
import type { PodReference } from "./pods.ts";
import { compareText } from "./rank.ts";

/** Soft: one of those that may go, and one a round is taken. Forced: has to go. */
export type EvictionKind = (typeof evictionKinds)[number];
export const evictionKinds = ["soft", "forced"] as const;

/** How long a threshold has been met without a break. Times are milliseconds since the epoch. */
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

/** A condition one plugin wanted. */
export interface PluginCondition {
  plugin: string;
  target: ConditionAnswer["target"];
  name: string;
  effects: string[];
  since: number;
  /** When the plugin last said that it is met. */
  lastSeen: number;
  /** The values with which its threshold was last met: "disk 95 > threshold 90". Absent where it came without any. */
  cause?: string;
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
  /** Pressures that requested the same pod besides; absent: none. They wait for it too. */
  others?: Pressure[];
  /** As in the victim: seconds; null is the pod's own. */
  gracePeriodSeconds: number | null;
  /** When it was decided. */
  since: number;
  /** When the API server, or the container runtime, accepted it; null before that. */
  acceptedAt: number | null;
  /** Until when the pod has to be deleted, counted from the acceptance; null before that. */
  deadline: number | null;
}

export type AskSource = "threshold" | "evictPods";

/** What requests pods: a plugin's threshold with its scope, or the plugin by name. */
export interface Pressure {
  plugin: string;
  scope: string;
  source: AskSource;
}

/** An eviction that was decided and not found to be unsent, for limits and cooldown. */
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

/** A disruption budget that allows no disruption, as the API server described it in its refusal. */
export interface BudgetStatus {
  /** "default/web"; null where the server did not name it. */
  name: string | null;
  /** Pods that are healthy, and that have to be; null where the server did not say. */
  currentHealthy: number | null;
  desiredHealthy: number | null;
}

/** A pod whose eviction failed: not tried again before `until`, and for a while after that only when no other can be. */
export interface PausedPod {
  uid: string;
  until: number;
  /** Why its eviction failed. */
  reason: string;
  /** The disruption budget that forbade it; null where none did. */
  budget: BudgetStatus | null;
}

/** A plugin with a hard threshold that named no pod that can be evicted, in so many rounds in a row. */
export interface UnusableAnswers {
  plugin: string;
  rounds: number;
}

/** The version of the stored state that this code writes. */
export const STATE_VERSION = 1;

/** Everything one round leaves for the next: plain JSON, each list in a fixed order. */
export interface EvictionState {
  version: number;
  /** When it was made, milliseconds since the epoch; null before the first round. All its times are relative to this one. */
  at: number | null;
  /** The machine's own time then; null where it was not known. */
  boot: BootTime | null;
  thresholds: ThresholdTimer[];
  conditions: PluginCondition[];
  queue: QueuedEviction[];
  pending: PendingEviction[];
  /** Evictions that an agent before this one decided, and of which it is not known that they were sent. */
  interrupted: PendingEviction[];
  recent: RecentEviction[];
  paused: PausedPod[];
  unusable: UnusableAnswers[];
}

/** The state before the first round. */
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
  };
}

/**
 * The state as of `now`, `elapsedMs` after it was made: all its times are moved by what the wall clock was stepped by in
 * between, so that a step neither confirms a threshold nor ends a pause.
 */
export function stateAt(state: EvictionState, now: number, elapsedMs: number): EvictionState {
  if (state.at === null) return state;
  const by = now - state.at - elapsedMs;
  return by === 0 ? { ...state, at: now } : moved(state, by, now);
}

/**
 * A stored state made ready for a restarted agent. Grace timers and transition periods do not run while no plugin is
 * asked, so the time in between counts neither for a threshold nor against a condition. Pauses, limits, cooldowns and
 * deadlines run on for `elapsedMs`. What is not known to have been sent is set apart: the first round decides it again.
 * @param elapsedMs the time since the state was made, as far as it can be trusted
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
    pending: pending.filter(({ acceptedAt }) => acceptedAt !== null),
    interrupted: interrupted.sort((a, b) => compareText(a.uid, b.uid)),
  };
}

/**
 * How much time has passed since a stored state was made: as far as wall clock and boot time agree, for either alone may
 * be wrong. Nothing where one of them is missing or the machine was booted in between.
 */
export function elapsedSince(
  { at, boot: then }: Pick<EvictionState, "at" | "boot">,
  now: number,
  boot: BootTime | undefined,
): number {
  if (at === null || !then || !boot || then.id !== boot.id) return 0;
  return Math.max(0, Math.min(now - at, boot.uptimeMs - then.uptimeMs));
}

/** An eviction that was accepted after the round that decided it. */
export interface Acceptance {
  uid: string;
  at: number;
  /** Until when the pod has to be deleted. */
  deadline: number;
}

/** The state with acceptances noted at the pending evictions they are of; their times are on the state's clock. */
export function withAcceptances(state: EvictionState, acceptances: readonly Acceptance[]): EvictionState {
  if (acceptances.length === 0) return state;
  const byUid = new Map(acceptances.map((acceptance) => [acceptance.uid, acceptance]));
  const pending = state.pending.map((pod) => {
    const accepted = byUid.get(pod.uid);
    return accepted ? { ...pod, acceptedAt: accepted.at, deadline: accepted.deadline } : pod;
  });
  return { ...state, pending };
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
  };
}

function movedEviction(pod: PendingEviction, by: number): PendingEviction {
  const { since, acceptedAt, deadline } = pod;
  return {
    ...pod,
    since: since + by,
    acceptedAt: movedTime(acceptedAt, by),
    deadline: movedTime(deadline, by),
  };
}

function movedTime(time: number | null, by: number): number | null {
  return time === null ? null : time + by;
}
