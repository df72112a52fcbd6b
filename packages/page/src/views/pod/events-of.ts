import type { ApiAnswers } from "../../api.ts";
import type { LifecycleEvent } from "../../live.ts";

/** A pod's events of the log and of the stream, oldest first, each once. */
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
