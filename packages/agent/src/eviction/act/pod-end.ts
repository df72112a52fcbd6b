import type { OutcomeResult } from "../decide/outcome.ts";
import type { EvictionTask } from "./eviction-task.ts";

/** How an eviction ends with its pod. */
export interface PodEnd {
  result: Extract<OutcomeResult, "terminated" | "superseded" | "unknown">;
  message: string;
}

/**
 * How an eviction ends whose pod has ended, from what is known of its requests. Pure.
 *
 * 1. `terminated` only if a request was accepted.
 * 2. `superseded` only if each request, if any, is known to be refused.
 * @param seen what was seen of the pod: "pod deleted", "pod finished (Succeeded)"
 */
export function podEndOf(task: EvictionTask, seen: string): PodEnd {
  switch (task.requests) {
    case "accepted":
      return { result: "terminated", message: seen };
    case "none": {
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

function unknownText({ isFollowed, disruption, stopsContainers }: EvictionTask, seen: string): string {
  const request = stopsContainers ? "the result of StopContainer" : "the response to its request";
  const why = isFollowed
    ? `no ${stopsContainers ? "result of StopContainer" : "response to a request"} was recorded before the agent restarted`
    : stopsContainers
      ? `${request} is not known`
      : `${request} was lost`;
  return `${seen}; ${why}${disruption && `; ${disruption}`}`;
}
