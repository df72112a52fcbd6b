import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { missingFor, positionOf, type Span, trimmed, withSpan } from "./spans.ts";
import { eventAt } from "./testing.ts";

/** The span of the events `after + 1` to `last`; each is one second after the other. */
const spanOf = (after: number, last: number): Span => ({
  since: after * 1_000,
  after,
  last,
  events: Array.from({ length: last - after }, (_, index) => eventAt(after + index + 1)),
});

const sequences = (spans: readonly Span[]) =>
  spans.flatMap(({ events }) => events.map(({ sequence }) => sequence));

describe("spans of the event log", () => {
  it("are the same in whatever order and however often their parts are read", () => {
    const part = fc.tuple(fc.integer({ min: 0, max: 40 }), fc.integer({ min: 0, max: 15 }));
    fc.assert(
      fc.property(fc.array(part, { minLength: 1, maxLength: 12 }), (parts) => {
        const spans = parts.reduce<Span[]>(
          (all, [after, count]) => withSpan(all, spanOf(after, after + count)),
          [],
        );
        const expected = new Set(
          parts.flatMap(([after, count]) => sequences([spanOf(after, after + count)])),
        );
        expect(sequences(spans)).toEqual([...expected].sort((a, b) => a - b));
        for (const { after, last, events } of spans) expect(events.length).toBe(last - after);
        for (let at = 1; at < spans.length; at++)
          expect(spans[at]!.after).toBeGreaterThan(spans[at - 1]!.last);
      }),
    );
  });

  it("know from where events are missing", () => {
    expect(missingFor([], 5_000, 0)).toEqual({ since: 5_000 });
    const live = spanOf(100, 110);
    expect(missingFor([live], 100_000, 110)).toBeUndefined();
    expect(missingFor([live], 100_000, 111)).toEqual({ after: 110 });
    expect(missingFor([live], 99_999, 110)).toEqual({ since: 99_999 });
    expect(missingFor([spanOf(20, 30), live], 21_000, 110)).toEqual({ after: 30 });
    expect(missingFor([spanOf(20, 30), live], 19_000, 110)).toEqual({ since: 19_000 });
    expect(missingFor([spanOf(20, 30), spanOf(5_000, 5_001)], 40_000, 5_001)).toEqual({ since: 40_000 });
  });

  it("that are too long lose what is after the shown time first, and are continued by the stream", () => {
    const spans = trimmed([spanOf(0, 100)], 40, 20_000);
    expect(sequences(spans)).toEqual(sequences([spanOf(0, 40)]));
    expect(spans.at(-1)).toMatchObject({ after: 100, last: 100, events: [] });
    expect(missingFor(spans, 0, 100)).toEqual({ after: 40 });
    const continued = withSpan(spans, { ...spanOf(100, 101), since: Number.POSITIVE_INFINITY });
    expect(continued).toHaveLength(2);
  });

  it("that are too long for the shown time lose the oldest", () => {
    const spans = trimmed([spanOf(0, 100)], 40, 200_000);
    expect(spans).toHaveLength(1);
    expect(sequences(spans)).toEqual(sequences([spanOf(60, 100)]));
    expect(missingFor(spans, 50_000, 100)).toEqual({ since: 50_000 });
    expect(missingFor(spans, 61_000, 100)).toBeUndefined();
  });

  it("have positions of cursors", () => {
    expect(positionOf("4f0c2a9b11de-1842")).toEqual({ log: "4f0c2a9b11de", sequence: 1842 });
  });
});
