import type { kind, pending, pressure, state, storedCondition, ValueOf } from "../openapi/index.ts";
import { compareText } from "../text/index.ts";

/** `soft`: may be evicted, at most one pod per round. `forced`: must be evicted. katalyst's `EvictPod.force_evict`. */
export type EvictionKind = ValueOf<typeof kind>;
export const evictionKinds: readonly EvictionKind[] = ["soft", "forced"];

/** The state between rounds: plain JSON, each list in a fixed order. Stored in the state database. */
export type EvictionState = ValueOf<typeof state>;

/** Since when a threshold has been met without interruption. */
export type ThresholdTimer = EvictionState["thresholds"][number];

/** A condition reported by one plugin. */
export type PluginCondition = ValueOf<typeof storedCondition>;

/** A pod selected beyond the burst of its round. */
export type QueuedEviction = EvictionState["queue"][number];

/** A victim of an earlier round whose eviction has not ended. */
export type PendingEviction = ValueOf<typeof pending>;

/** The origin of requests: a plugin's threshold with its scope, or requests of the plugin by name. */
export type Pressure = ValueOf<typeof pressure>;

/** An eviction that counts for limits and cooldown: it was sent, or may have been. */
export type RecentEviction = EvictionState["recent"][number];

/**
 * A pod whose eviction failed. It is not retried before `until`, and for some time after that only if no other pod can
 * be evicted.
 */
export type PausedPod = EvictionState["paused"][number];

/** The number of consecutive rounds in which a plugin with a hard threshold named only pods that can't be evicted. */
export type UnusableAnswers = EvictionState["unusable"][number];

/** The version of the stored state that this code writes. */
export const STATE_VERSION = 2;

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
    sentBefore: [],
    paused: [],
    unusable: [],
    unrecorded: [],
    unserved: [],
  };
}

const SHORTEST_STEP_MS = 10;

/**
 * Returns the state at `now`, `elapsedMs` after it was computed. Moves all its times by the step of the wall clock in
 * between, so that a step neither confirms a threshold nor ends a pause. Differences of less than 10 ms are none: the
 * wall clock has whole milliseconds, and elapsed time fractions of them. Pure.
 */
export function stateAt(state: EvictionState, now: number, elapsedMs: number): EvictionState {
  if (state.at === null) return state;
  const by = now - state.at - elapsedMs;
  return Math.abs(by) < SHORTEST_STEP_MS ? { ...state, at: now } : moved(state, by, now);
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
    pending: pending
      .filter(({ acceptedAt }) => acceptedAt !== null)
      .map((eviction) => ({ ...eviction, isSettled: true })),
    interrupted: interrupted.sort((a, b) => compareText(a.uid, b.uid)),
  };
}

/** Progress of an eviction between the round that decided it and its outcome, stored immediately. */
export interface EvictionProgress {
  uid: string;
  /**
   * - `sending`: a request is about to be sent, the first one or a retry.
   * - `accepted`: a request was accepted.
   * - `followed`: the pod is terminating. Either the cause is not known to be a request of the agent, or `accepted` was
   *   already reported.
   */
  stage: "sending" | "accepted" | "followed";
  at: number;
  /** When the pod must be deleted; null for `sending`. */
  deadline: number | null;
  /** Whether it is sent to the container runtime, so that the pod is not deleted. Undefined means false. */
  stopsContainers?: boolean;
}

/**
 * Returns the state with the progress of its pending evictions. An eviction counts for limits and cooldown from its
 * acceptance, which retries may delay; until that is known, from its last request, which may have been accepted. Times
 * refer to the state's clock. Pure.
 */
export function withProgress(state: EvictionState, progress: readonly EvictionProgress[]): EvictionState {
  if (progress.length === 0) return state;
  const requested = new Map(
    progress.filter(({ stage }) => stage !== "followed").map(({ uid, at }) => [uid, at]),
  );
  // An earlier eviction of the same pod keeps its time.
  const recent = state.recent.map((eviction) =>
    eviction.releasedAt === null
      ? { ...eviction, at: Math.max(eviction.at, requested.get(eviction.uid) ?? 0) }
      : eviction,
  );
  const pending = new Map(state.pending.map((pod) => [pod.uid, pod]));
  for (const step of progress) {
    const pod = pending.get(step.uid);
    if (pod) pending.set(step.uid, advanced(pod, step));
  }
  return { ...state, pending: [...pending.values()], recent: recent.sort(byTime) };
}

/** Compares evictions by time, then by UID. */
export function byTime(a: RecentEviction, b: RecentEviction): number {
  return a.at - b.at || compareText(a.uid, b.uid);
}

function advanced(pod: PendingEviction, { stage, at, deadline, stopsContainers }: EvictionProgress) {
  const stops = stopsContainers ? { stopsContainers } : {};
  switch (stage) {
    case "sending":
      return { ...pod, sendingAt: pod.sendingAt ?? at, ...stops };
    case "accepted": {
      // An earlier request may have been for the container runtime.
      const { stopsContainers: _, ...requested } = pod;
      return { ...requested, acceptedAt: at, deadline, ...stops };
    }
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
