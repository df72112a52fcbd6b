import type { ApiAnswers } from "@nodekeeper/api/openapi";
import type { Query } from "../../api.ts";
import type { LifecycleEvent } from "../../live.ts";

type Page = ApiAnswers["events"];

/**
 * Reads all events of a pod in the log, at most as many as the log holds (`lifecycle.logCapacity`). The agent searches
 * 20,000 events per page, so a page without events of the pod is not necessarily the last.
 */
export async function readEventsOf(
  uid: string,
  read: (query: Query) => Promise<Page>,
): Promise<Page["items"]> {
  const items: Page["items"][number][] = [];
  let page: Page | undefined;
  do {
    page = await read({ uid, limit: 1_000, cursor: page?.cursor });
    items.push(...page.items);
  } while (!page.end);
  return items;
}

/** Returns a pod's events from the log and the stream, oldest first, deduplicated. */
export function eventsOf(
  uid: string,
  logged: Page["items"],
  live: readonly LifecycleEvent[],
): LifecycleEvent[] {
  const read = logged.flatMap((item) =>
    item.kind === "event" && item.event.pod.uid === uid ? [item.event] : [],
  );
  const known = new Set(read.map(({ sequence }) => sequence));
  const later = live.filter(({ pod, sequence }) => pod.uid === uid && !known.has(sequence));
  return [...read, ...later].sort((a, b) => a.sequence - b.sequence);
}
