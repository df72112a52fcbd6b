import type { Victim } from "../decide/decision.ts";
import { type PodReference, referenceTo } from "../decide/pods.ts";
import type { PendingEviction } from "../decide/state.ts";

/** One eviction from its decision to its end. Mutable. */
export interface EvictionTask {
  readonly pod: PodReference;
  readonly plugin: string;
  readonly reason: string;
  /** Seconds; null for the pod's own. */
  readonly gracePeriodSeconds: number | null;
  /** When it was decided, monotonic milliseconds. */
  readonly since: number;
  /** Whether it was sent before a restart of the agent: it is followed and never sent again. */
  readonly isFollowed: boolean;
  /** `waiting`: to be sent. `sent`: accepted, and waiting for its end. */
  phase: "waiting" | "sent";
  /** Attempts that are to be repeated. */
  tries: number;
  /** Attempts that were refused, as far as known for a reason of this pod. */
  refusals: number;
  /** A failed attempt may have been accepted: the response was lost. */
  maybeSent: boolean;
  /** An attempt is in progress: the pod may be deleted before the response arrives. */
  isSending: boolean;
  /** Another client deleted the pod before anything was sent: its end is followed, but it was not evicted. */
  isForeign: boolean;
  /** Reported as still terminating after its deadline. */
  isOverdue: boolean;
  /** For the killer `containerStop`: the containers that the first attempt found running. */
  containers: ReadonlySet<string> | undefined;
  /** Why the eviction was withdrawn; undefined where it was not. */
  withdrawn: string | undefined;
  /** The last recorded step. */
  lastStep: string;
  /**
   * When it must be accepted, and once it is, when the pod must be deleted: monotonic milliseconds. Undefined before the
   * first attempt.
   */
  deadline: number | undefined;
}

/** @param since when it was decided, monotonic milliseconds */
export function taskOf(victim: Victim | PendingEviction, since: number, isFollowed: boolean): EvictionTask {
  const { plugin, reason, gracePeriodSeconds } = victim;
  return {
    pod: referenceTo(victim),
    plugin,
    reason,
    gracePeriodSeconds,
    since,
    isFollowed,
    phase: "waiting",
    tries: 0,
    refusals: 0,
    maybeSent: false,
    isSending: false,
    isForeign: false,
    isOverdue: false,
    containers: undefined,
    withdrawn: undefined,
    lastStep: "",
    deadline: undefined,
  };
}
