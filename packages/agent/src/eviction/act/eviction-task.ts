import type { Victim } from "../decide/decision.ts";
import { type PodReference, referenceTo } from "../decide/pods.ts";
import type { PendingEviction } from "../decide/state.ts";

/** One eviction from its decision to its end. Changes as it goes. */
export interface EvictionTask {
  readonly pod: PodReference;
  readonly plugin: string;
  readonly reason: string;
  /** Seconds; null is the pod's own. */
  readonly gracePeriodSeconds: number | null;
  /** When it was decided, monotonic milliseconds. */
  readonly since: number;
  /** Whether it was sent by an agent before this one, and is only followed. */
  readonly isFollowed: boolean;
  /** `waiting`: to be sent. `sent`: it was accepted, and its end is awaited. */
  phase: "waiting" | "sent";
  /** Tries so far that were to be repeated. */
  tries: number;
  /** Tries that were answered and refused, for a reason of this pod as far as can be told. */
  refusals: number;
  /** A try may have been accepted although it failed. */
  maybeSent: boolean;
  /** A try is under way: its pod may be deleted before the answer comes. */
  isSending: boolean;
  /** Another client deleted its pod before anything was sent: its end is awaited, and it was not evicted. */
  isForeign: boolean;
  /** Reported as still terminating after its deadline. */
  isOverdue: boolean;
  /** Containers that are to be stopped, where that is how it is evicted: those of the first try. */
  containers: ReadonlySet<string> | undefined;
  /** Why it is not to be evicted after all; undefined where it is. */
  withdrawn: string | undefined;
  /** The step recorded last. */
  lastStep: string;
  /** Until then it has to be accepted or, once it is, the pod deleted: monotonic milliseconds. Not known before the first try. */
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
