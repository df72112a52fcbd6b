import type { PodIdentity } from "@nodekeeper/api/lifecycle";
import type { ApiAnswers, Frozen } from "@nodekeeper/api/openapi";
import type { Clock } from "@nodekeeper/core/lib";
import {
  formatCursor,
  type LogPosition,
  type PodLifecycleEventGenerator,
  parseCursor,
} from "../lifecycle/index.ts";
import type { JsonRoute } from "./api.ts";
import { apiRoute, pageAfter } from "./api-route.ts";
import { eventItem, podStatus, snapshotItem } from "./lifecycle-json.ts";

type EventPage = Frozen<ApiAnswers["events"]>;
/** An event, or a snapshot of the pods if the events since a cursor have expired. */
export type LifecycleItem = EventPage["items"][number];

/** The parts of the lifecycle that the routes read. */
export type LifecycleReader = Pick<
  PodLifecycleEventGenerator,
  "events" | "statuses" | "listedAt" | "problems" | "listedSoon"
>;

// Bounds the work of one response if few events match the selector.
const MOST_READ = 20_000;

/** The routes of the JSON API for pods and containers as the runtime reports them. */
export function lifecycleRoutes(lifecycle: LifecycleReader, clock: Clock): JsonRoute[] {
  const { events, statuses } = lifecycle;
  return [
    apiRoute("pods", async ({ limit, continue: after = "", ...selector }, signal) => {
      await lifecycle.listedSoon(signal);
      // Read without an await in between: the cache is written before events are appended.
      const cursor = formatCursor(events.position);
      const found = statuses.uids().flatMap((uid) => {
        const entry = statuses.get(uid);
        const isKnown = entry.status.name !== "" || entry.error !== undefined;
        return isKnown && isSelected(entry.status, selector) ? [{ entry, key: keyOf(entry.status) }] : [];
      });
      const { page, next } = pageAfter(found, after, limit);
      return {
        items: page.map(({ entry }) =>
          podStatus(entry, clock.now() - (clock.monotonic() - entry.observedAt)),
        ),
        ...next,
        cursor,
        listedAt: lifecycle.listedAt,
        problems: lifecycle.problems(),
      };
    }),
    apiRoute("events", async ({ cursor, since, limit, ...selector }, signal) => {
      await events.knownSoon(signal);
      const start = cursor === undefined ? events.positionAt(since) : parseCursor(cursor);
      const { items, position } = eventsAfter(events, start, limit, (pod) => isSelected(pod, selector));
      return {
        items,
        cursor: formatCursor(position),
        end: position.sequence === events.last,
        listedAt: lifecycle.listedAt,
        problems: lifecycle.problems(),
      };
    }),
  ];
}

/**
 * Returns at most `limit` events after a position, and the position to continue from. A position that is not in the log
 * (of an earlier log, or expired) yields one snapshot. Throws `unavailable` while the pods are unknown.
 */
export function eventsAfter(
  events: LifecycleReader["events"],
  after: LogPosition,
  limit: number,
  isSelected: (pod: PodIdentity) => boolean,
): { items: LifecycleItem[]; position: LogPosition } {
  const { id, last } = events;
  const isOfThisLog = after.log === id && after.sequence <= last;
  if (!isOfThisLog || (after.sequence < last && !events.get(after.sequence + 1))) {
    const { position } = events;
    const pods = events.snapshot().filter(isSelected);
    const missed = isOfThisLog ? last - after.sequence : undefined;
    return { items: [snapshotItem(pods, position, missed)], position };
  }
  const items: LifecycleItem[] = [];
  const end = Math.min(last, after.sequence + MOST_READ);
  let { sequence } = after;
  while (sequence < end && items.length < limit) {
    const event = events.get(++sequence);
    if (event && isSelected(event.pod)) items.push(eventItem(event, { log: id, sequence }));
  }
  return { items, position: { log: id, sequence } };
}

/** Absent and empty values select all pods. */
type Selector = Readonly<Record<"uid" | "namespace" | "name", string | undefined>>;

export function isSelected(pod: PodIdentity, { uid, namespace, name }: Selector): boolean {
  return (
    (!uid || uid === pod.uid) && (!namespace || namespace === pod.namespace) && (!name || name === pod.name)
  );
}

function keyOf({ namespace, name, uid }: PodIdentity): string {
  return `${namespace}/${name}/${uid}`;
}
