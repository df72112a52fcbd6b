import { type EvictionOutcome, earlierRequestText, isFinal } from "./outcome.ts";
import { type EvictionPod, referenceTo } from "./pods.ts";
import type { PendingEviction } from "./state.ts";

/**
 * Returns the outcomes of evictions that a restart of the agent interrupted before they were accepted, based on the
 * pods observed by the first round. Pure.
 *
 * 1. An eviction whose pod is terminating has no outcome yet: it is followed to its end.
 * 2. If the pod has ended, the outcome is `superseded` if no request can have been sent for this or an earlier eviction
 *    of the pod. Otherwise it is `unknown`.
 * 3. If the pod is not terminating, it was not evicted yet: the outcome is `withdrawn`, and the round may select
 *    it again. A request that may have been sent can still arrive, so it is recorded as sent and counts for the limits.
 * @param known outcomes that are already known. Pods with a final one get no second outcome.
 */
export function interruptedOutcomes(
  interrupted: readonly PendingEviction[],
  pods: readonly EvictionPod[],
  known: readonly EvictionOutcome[],
): EvictionOutcome[] {
  if (interrupted.length === 0) return [];
  const ended = new Set(known.filter(isFinal).map(({ uid }) => uid));
  const byUid = new Map(pods.map((pod) => [pod.uid, pod]));
  return interrupted
    .filter(({ uid }) => !ended.has(uid))
    .flatMap((eviction) => outcomeOf(eviction, byUid.get(eviction.uid)) ?? []);
}

function outcomeOf(eviction: PendingEviction, pod: EvictionPod | undefined): EvictionOutcome | undefined {
  const isSent = eviction.sendingAt !== null;
  const { sentBefore, selectedAt, stopsContainers = false } = eviction;
  const missing = stopsContainers ? "no result of StopContainer" : "no response to its request";
  const known = {
    ...referenceTo(eviction),
    sent: isSent,
    ...(sentBefore ? { sentBefore } : {}),
    ...(stopsContainers ? { stopsContainers } : {}),
    ...(selectedAt === undefined ? {} : { selectedAt }),
  };
  const end = pod ? finishedText(pod) : "pod was deleted while the agent was not running";
  if (end !== undefined) {
    if (isSent || sentBefore)
      return {
        ...known,
        result: "unknown",
        message: isSent
          ? `${end}; a request may have been sent before the agent restarted, and no response is recorded`
          : `${end}; ${earlierRequestText}`,
      };
    return { ...known, result: "superseded", message: `${end}, before its eviction was sent` };
  }
  if (pod?.deletionTimestamp !== null) return undefined;
  return {
    ...known,
    result: "withdrawn",
    message: isSent
      ? `${missing} was recorded before the agent restarted`
      : "it was not sent before the agent restarted",
  };
}

function finishedText({ phase, deletionTimestamp }: EvictionPod): string | undefined {
  const hasFinished = phase === "Succeeded" || phase === "Failed";
  return hasFinished && deletionTimestamp === null ? `pod finished (${phase})` : undefined;
}
