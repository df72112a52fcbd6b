import type { Victim } from "../decide/decision.ts";
import { type PodReference, referenceTo } from "../decide/pods.ts";
import type { PendingEviction } from "../decide/state.ts";

/** One eviction from its decision to its end. Mutable. Times are monotonic milliseconds. */
export interface EvictionTask {
  readonly pod: PodReference;
  readonly plugin: string;
  readonly reason: string;
  /** Seconds; null for the pod's own. */
  readonly gracePeriodSeconds: number | null;
  /** When it was decided. */
  readonly since: number;
  /** Whether it was decided before a restart of the agent: it is followed and never sent again. */
  readonly isFollowed: boolean;
  /** `waiting`: to be sent. `sent`: accepted, or its pod is terminating: waiting for its end. */
  phase: "waiting" | "sent";
  /**
   * What is known of its requests, the best of all attempts. Only `accepted` makes the pod's end an eviction.
   *
   * - `none`: none was sent, or each was refused.
   * - `underWay`: the response to one is awaited, or containers are being stopped.
   * - `unanswered`: one was sent, and its response was lost or is not recorded.
   * - `accepted`: by the API server; or the containers were stopped.
   */
  requests: "none" | "underWay" | "unanswered" | "accepted";
  /** When the first request was about to be sent; undefined before that. */
  sendingAt: number | undefined;
  /** When its deadline started: its acceptance, or when the pod was found terminating. */
  releasingSince: number | undefined;
  /** Attempts that are to be repeated. */
  tries: number;
  /** Attempts that were refused, as far as known for a reason of this pod. */
  refusals: number;
  /** How the pod ended while a request was under way: its response decides the outcome. */
  seenEnd: string | undefined;
  /** The condition of the terminating pod that names the Eviction API; empty where it has none. */
  disruption: string;
  /** Whether containers are stopped, and the pod itself stays. */
  stopsContainers: boolean;
  /** Reported as still terminating after its deadline. */
  isOverdue: boolean;
  /** For the killer `containerStop`: the containers that the first attempt found running. */
  containers: ReadonlySet<string> | undefined;
  /** Why the eviction was withdrawn; undefined where it was not. */
  withdrawn: string | undefined;
  /** The last recorded step. */
  lastStep: string;
  /** When it must be accepted, and once it is, when the pod must be deleted. Undefined before the first attempt. */
  deadline: number | undefined;
}

/** The task of a victim. @param now monotonic milliseconds */
export function taskOf(victim: Victim, now: number): EvictionTask {
  return {
    ...described(victim),
    since: now,
    isFollowed: false,
    requests: "none",
    sendingAt: undefined,
    releasingSince: undefined,
    stopsContainers: false,
    isOverdue: false,
    deadline: undefined,
  };
}

/**
 * The task of an eviction that was decided before a restart of the agent.
 * @param ofMonotonic the monotonic time of a wall time
 */
export function followedTask(pending: PendingEviction, ofMonotonic: (wall: number) => number): EvictionTask {
  const { sendingAt, acceptedAt, deadline, stopsContainers = false, isOverdue = false } = pending;
  const timeOf = (wall: number | null) => (wall === null ? undefined : ofMonotonic(wall));
  const isAccepted = acceptedAt !== null && !stopsContainers;
  return {
    ...described(pending),
    since: ofMonotonic(pending.since),
    isFollowed: true,
    requests: isAccepted ? "accepted" : sendingAt !== null ? "unanswered" : "none",
    sendingAt: timeOf(sendingAt),
    releasingSince: timeOf(acceptedAt),
    stopsContainers,
    isOverdue,
    deadline: timeOf(deadline),
  };
}

function described({ plugin, reason, gracePeriodSeconds, ...pod }: Victim | PendingEviction) {
  return {
    ...{ pod: referenceTo(pod), plugin, reason, gracePeriodSeconds },
    phase: "waiting" as const,
    ...{ tries: 0, refusals: 0, seenEnd: undefined, disruption: "", containers: undefined },
    ...{ withdrawn: undefined, lastStep: "" },
  };
}
