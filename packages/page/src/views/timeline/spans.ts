import type { LifecycleEvent } from "../../live.ts";

/** A part of the event log without holes: the events with sequence numbers after `after`, up to `last`. */
export interface Span {
  /** Since when it has all events, wall milliseconds. */
  since: number;
  after: number;
  last: number;
  events: readonly LifecycleEvent[];
}

/** The parts of a cursor: the log's id and a sequence number. */
export function positionOf(cursor: string): { log: string; sequence: number } {
  const dash = cursor.lastIndexOf("-");
  return { log: cursor.slice(0, dash), sequence: Number(cursor.slice(dash + 1)) };
}

/** Adds a span; spans that overlap or adjoin become one. The answer is in the order of the log, each event once. */
export function withSpan(spans: readonly Span[], added: Span): Span[] {
  const before = spans.filter(({ last }) => last < added.after);
  const behind = spans.filter(({ after }) => after > added.last);
  const touching = spans.filter(({ after, last }) => last >= added.after && after <= added.last);
  return [...before, touching.reduce(joined, added), ...behind];
}

function joined(one: Span, other: Span): Span {
  const [first, second] = one.after <= other.after ? [one, other] : [other, one];
  const rest = second.last > first.last ? second.events.filter(({ sequence }) => sequence > first.last) : [];
  return {
    since: Math.min(first.since, second.since),
    after: first.after,
    last: Math.max(first.last, second.last),
    events: rest.length === 0 ? first.events : [...first.events, ...rest],
  };
}

/**
 * The spans with at most so many events: the newest are dropped first, as far as they are after `to`, then the oldest. The
 * last span, which the stream continues, stays, if need be without events.
 */
export function trimmed(spans: readonly Span[], most: number, to: number): Span[] {
  const kept = [...spans];
  let excess = kept.reduce((sum, { events }) => sum + events.length, 0) - most;
  if (excess <= 0) return kept;
  const { last } = kept.at(-1)!;
  kept.push({ since: Number.POSITIVE_INFINITY, after: last, last, events: [] });
  for (let at = kept.length - 1; at >= 0 && excess > 0; at--) {
    const { events, ...span } = kept[at]!;
    const needed = events.findLastIndex((event) => event.at <= to) + 1;
    const count = Math.max(needed, events.length - excess);
    if (count === events.length) continue;
    excess -= events.length - count;
    kept[at] = { ...span, last: events[count]!.sequence - 1, events: events.slice(0, count) };
  }
  for (let at = 0; at < kept.length && excess > 0; at++) {
    const { events, last } = kept[at]!;
    const count = Math.min(excess, events.length);
    if (count === 0) continue;
    excess -= count;
    const rest = events.slice(count);
    const since = rest[0]?.at ?? Number.POSITIVE_INFINITY;
    kept[at] = { since, after: events[count - 1]!.sequence, last, events: rest };
  }
  const [first, ...more] = kept.filter(({ after, last }, at) => last > after || at === kept.length - 1);
  return more.reduce((all, span) => withSpan(all, span), [first!]);
}

/**
 * From where events have to be read for the time from `from` on: a time, or a sequence number to continue after; undefined where
 * nothing is missing. Events up to the log's newest are wanted, also for a stretch in the past: a container that ran during
 * all of it may have no event but its exit later.
 * @param newest sequence number of the newest event that is known to be in the log
 */
export function missingFor(
  spans: readonly Span[],
  from: number,
  newest: number,
): { since: number } | { after: number } | undefined {
  const found = spans.findLast(({ since }) => since <= from);
  if (!found) return { since: from };
  if (found === spans.at(-1) && found.last >= newest) return undefined;
  // It ends long before: what is between is not wanted.
  const isFar = newest - found.last > FAR && (found.events.at(-1)?.at ?? Number.NEGATIVE_INFINITY) < from;
  return isFar ? { since: from } : { after: found.last };
}

// A hole of so many events is read even where its end would do.
const FAR = 1_000;
