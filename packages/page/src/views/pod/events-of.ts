import type { ApiAnswers } from "@nodekeeper/api/openapi";
import type { LifecycleEvent } from "../../live.ts";

/** Returns a pod's events from the log and the stream, oldest first, deduplicated. */
export function eventsOf(
  uid: string,
  logged: ApiAnswers["events"]["items"],
  live: readonly LifecycleEvent[],
): LifecycleEvent[] {
  const read = logged.flatMap((item) =>
    item.kind === "event" && item.event.pod.uid === uid ? [item.event] : [],
  );
  const known = new Set(read.map(({ sequence }) => sequence));
  const later = live.filter(({ pod, sequence }) => pod.uid === uid && !known.has(sequence));
  return [...read, ...later].sort((a, b) => a.sequence - b.sequence);
}
