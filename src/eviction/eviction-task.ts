import type { Victim } from "./decision.ts";
import { type PodReference, referenceTo } from "./pods.ts";
import type { PendingEviction } from "./state.ts";

/** One eviction from its decision to its end. Changes as it goes. */
export interface EvictionTask {
  readonly pod: PodReference;
  readonly plugin: string;
  readonly reason: string;
  /** Seconds; null is the pod's own. */
  readonly gracePeriodSeconds: number | null;
  /** When it was decided, wall milliseconds. */
  readonly since: number;
  /** `waiting`: to be sent. `sent`: the other side took it, and its end is awaited. */
  phase: "waiting" | "sent";
  /** Tries so far that were to be repeated. */
  tries: number;
  /** A try may have been taken although it failed, or an agent before this one may have sent it. */
  maybeSent: boolean;
  /** Why it shall not go after all; undefined where it shall. */
  withdrawn: string | undefined;
  /** What was told last. */
  lastStep: string;
  /** Until then it has to be sent or, once it is, to be gone: monotonic milliseconds. Not known before its first try. */
  deadline: number | undefined;
}

/** @param maybeSent whether an agent before this one may have sent it */
export function taskOf(victim: Victim | PendingEviction, since: number, maybeSent: boolean): EvictionTask {
  const { plugin, reason, gracePeriodSeconds } = victim;
  return {
    pod: referenceTo(victim),
    plugin,
    reason,
    gracePeriodSeconds,
    since,
    phase: "waiting",
    tries: 0,
    maybeSent,
    withdrawn: undefined,
    lastStep: "",
    deadline: undefined,
  };
}
