import type { LifecycleEvent } from "../../live.ts";

/** A contiguous part of the event log: the events with sequence numbers after `after`, up to `last`. */
export interface Span {
  /** Since when it has all events, wall-clock milliseconds. */
  since: number;
  after: number;
  last: number;
  events: readonly LifecycleEvent[];
}

/** Splits a cursor into the log's id and a sequence number. */
export function positionOf(cursor: string): { log: string; sequence: number } {
  const dash = cursor.lastIndexOf("-");
  return { log: cursor.slice(0, dash), sequence: Number(cursor.slice(dash + 1)) };
}

/** Adds a span. Spans that overlap or adjoin are merged. The result is in log order, deduplicated. */
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
 * Trims spans to at most `most` events: drops the newest after `to` first, then the oldest. The last span, which the
 * stream continues, is always kept, even if it has no events.
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
 * Returns from where events must be read for the time since `from`: a time, or a sequence number. Undefined if nothing
 * is missing. Also for a past range, events up to the newest are required, because the only event of a container that
 * ran during all of it may be its later exit.
 * @param newest sequence number of the newest known event in the log
 */
export function missingFor(
  spans: readonly Span[],
  from: number,
  newest: number,
): { since: number } | { after: number } | undefined {
  const found = spans.findLast(({ since }) => since <= from);
  if (!found) return { since: from };
  if (found === spans.at(-1) && found.last >= newest) return undefined;
  // The span ends long before the range, so events in between are not needed.
  const isFar = newest - found.last > FAR && (found.events.at(-1)?.at ?? Number.NEGATIVE_INFINITY) < from;
  return isFar ? { since: from } : { after: found.last };
}

// Gaps up to this many events are always read.
const FAR = 1_000;
