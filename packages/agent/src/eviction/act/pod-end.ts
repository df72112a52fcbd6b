import { earlierRequestText, type OutcomeResult } from "@nodekeeper/api/decide";
import type { EvictionTask } from "./eviction-task.ts";

/** How an eviction ends when its pod has ended. */
export interface PodEnd {
  result: Extract<OutcomeResult, "terminated" | "superseded" | "unknown">;
  message: string;
}

/**
 * Returns how an eviction ends when its pod has ended, based on the known state of its requests. Pure.
 *
 * 1. `terminated` only if a request was accepted.
 * 2. `superseded` only if no request was sent, or each is known to be refused, also of earlier evictions of the pod.
 * @param seen the observed end of the pod, for example "pod deleted" or "pod finished (Succeeded)"
 */
export function podEndOf(task: EvictionTask, seen: string): PodEnd {
  switch (task.requests) {
    case "accepted":
      return { result: "terminated", message: seen };
    case "none": {
      if (task.sentBefore)
        return {
          result: "unknown",
          message: `${seen}; ${earlierRequestText}`,
        };
      const step = task.sendingAt === undefined ? "sent" : "accepted";
      const message =
        task.phase === "sent"
          ? `${seen}; it was terminating before its eviction was ${step}`
          : `${seen} before its eviction was ${step}`;
      return { result: "superseded", message };
    }
    case "underWay":
    case "unanswered":
      return { result: "unknown", message: unknownText(task, seen) };
  }
}

function unknownText(task: EvictionTask, seen: string): string {
  const { isFollowed, disruption, stopsContainers, doubt } = task;
  const why = isFollowed
    ? `no ${stopsContainers ? "result of StopContainer" : "response to a request"} was recorded before the agent restarted`
    : `${stopsContainers ? "its containers may have been stopped" : "its request may have been accepted"}${doubt === undefined ? "" : `: ${doubt}`}`;
  return `${seen}; ${why}${disruption && `; ${disruption}`}`;
}
