import { type PendingEviction, type PodReference, referenceTo, type Victim } from "@nodekeeper/api/decide";

/** One eviction, from its decision to its end. Mutable. Times are monotonic milliseconds. */
export interface EvictionTask {
  readonly pod: PodReference;
  readonly plugin: string;
  readonly reason: string;
  /** Seconds; null for the pod's own grace period. */
  readonly gracePeriodSeconds: number | null;
  /** The time of the decision. */
  readonly since: number;
  /** Whether it was decided before a restart of the agent. It is then followed and never sent again. */
  readonly isFollowed: boolean;
  /** `waiting`: not accepted yet. `sent`: accepted, or the pod is terminating; the task awaits the end of the pod. */
  phase: "waiting" | "sent";
  /**
   * The known state of its requests, over all attempts. The end of the pod counts as an eviction only if a request was
   * `accepted`.
   *
   * - `none`: no request was sent, or each was refused.
   * - `underWay`: the response to a request is awaited, or containers are being stopped.
   * - `unanswered`: a request was sent, and its response was lost, is inconclusive (such as a 503), or is not
   *   recorded.
   * - `accepted`: the API server accepted a request, or the containers were stopped.
   */
  requests: "none" | "underWay" | "unanswered" | "accepted";
  /** Whether a request of an earlier eviction of the pod may have been accepted. */
  readonly sentBefore: boolean;
  /** The last error after which a request may have been accepted; undefined if there was none. */
  doubt: string | undefined;
  /** When the first request was about to be sent; undefined before that. */
  sendingAt: number | undefined;
  /** When the deadline started: at the acceptance, or when the pod was found terminating. */
  releasingSince: number | undefined;
  /** The number of attempts that failed for a reason that permits a retry. */
  tries: number;
  /** The number of attempts that were repeated at once because the pod had changed since it was read. */
  conflicts: number;
  /** The number of attempts that were refused, possibly for a reason specific to this pod. */
  refusals: number;
  /** How the pod ended while a request was in progress. The response to that request decides the outcome. */
  seenEnd: string | undefined;
  /** Whether the API server no longer has the pod. */
  isGone: boolean;
  /** The terminating pod's condition that names the Eviction API; empty if there is none. */
  disruption: string;
  /** Whether the eviction stops containers and does not delete the pod. */
  stopsContainers: boolean;
  /** Whether the pod was reported as still terminating after its deadline. */
  isOverdue: boolean;
  /** For the killer `containerStop`: the containers that the first attempt found running. */
  containers: ReadonlySet<string> | undefined;
  /** Why the eviction was withdrawn; undefined if it was not. */
  withdrawn: string | undefined;
  /** The last recorded step. */
  lastStep: string;
  /**
   * When the eviction must be accepted; after the acceptance, when the pod must be deleted. Undefined before the first
   * attempt.
   */
  deadline: number | undefined;
}

/** Returns the task of a victim. @param now monotonic milliseconds */
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
 * Returns the task of an eviction that was decided before a restart of the agent.
 * @param ofMonotonic converts a wall time to a monotonic time
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

/** Returns whether it is known that no request to evict the pod was accepted. */
export function isUnevicted({
  requests,
  sentBefore,
}: Pick<EvictionTask, "requests" | "sentBefore">): boolean {
  return requests === "none" && !sentBefore;
}

function described(victim: Victim | PendingEviction) {
  const { plugin, reason, gracePeriodSeconds, sentBefore = false, ...pod } = victim;
  return {
    ...{ pod: referenceTo(pod), plugin, reason, gracePeriodSeconds, sentBefore },
    phase: "waiting" as const,
    ...{
      tries: 0,
      conflicts: 0,
      refusals: 0,
      seenEnd: undefined,
      isGone: false,
      disruption: "",
      containers: undefined,
    },
    ...{ withdrawn: undefined, doubt: undefined, lastStep: "" },
  };
}
