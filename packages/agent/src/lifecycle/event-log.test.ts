import { FakeClock, stopped } from "@nodekeeper/core/lib";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { EventLog } from "./event-log.ts";
import type { NewEvent } from "./events.ts";
import { formatCursor, type LogItem, parseCursor } from "./index.ts";

const pod = { uid: "a", namespace: "default", name: "pod-a" };
const some = (count: number): NewEvent[] =>
  Array.from({ length: count }, () => ({
    type: "PodSync",
    pod,
    container: undefined,
    exitCode: undefined,
    reason: "",
  }));
let fallen: number[] = [];
const createLog = (capacity: number, clock = new FakeClock()) => {
  fallen = [];
  let ids = 0;
  return new EventLog({
    capacity,
    clock,
    snapshot: () => [],
    newId: () => `log${++ids}`,
    onFellOff: (missed) => fallen.push(missed),
  });
};
const brief = (item: LogItem | undefined) =>
  item?.kind === "event"
    ? item.event.sequence
    : `${item?.why} at ${item?.position.sequence}, missed ${item?.missed}`;
const live = new AbortController().signal;

describe("EventLog", () => {
  it("returns its end for a time after the restore if the last events were not restored, and no later position for an earlier time", () => {
    const clock = new FakeClock();
    const log = createLog(10, clock);
    const [event] = some(1);
    log.restore("kept", 5_000, [{ ...event!, sequence: 4_000, at: clock.now() - 60_000 }]);
    const sequenceAt = (wallMs: number) => log.positionAt(wallMs).sequence;
    expect(sequenceAt(clock.now() + 1)).toBe(5_000);
    // Which of the events 4,001 to 5,000 came before is not known: the consumer learns that it missed some.
    expect(sequenceAt(clock.now() - 30_000)).toBe(4_000);
    expect(sequenceAt(clock.now() - 60_000)).toBe(3_999);
  });

  it("begins with a snapshot where the consumer names no position", async () => {
    const log = createLog(10);
    log.append(some(3));
    const reader = log.read({}, live);
    expect(brief((await reader.next()).value)).toBe("begin at 3, missed undefined");
    const next = reader.next();
    log.append(some(1));
    expect(brief((await next).value)).toBe(4);
  });

  it("gives a consumer that fell behind the number of missed events and a snapshot", async () => {
    const log = createLog(10);
    const reader = log.read({ after: { log: log.id, sequence: 0 } }, live);
    log.append(some(3));
    expect(brief((await reader.next()).value)).toBe(1);
    log.append(some(20));
    expect(log.slowest).toBe(22);
    expect(brief((await reader.next()).value)).toBe("fellOff at 23, missed 22");
    log.append(some(1));
    expect(brief((await reader.next()).value)).toBe(24);
    expect(fallen).toEqual([22]);
  });

  it.each([
    ["of another log", { log: "other", sequence: 1 }],
    ["that is not there yet", { log: "log1", sequence: 9 }],
  ])("gives a snapshot after a position %s", async (_, after) => {
    const log = createLog(10);
    log.append(some(3));
    const reader = log.read({ after }, live);
    expect(brief((await reader.next()).value)).toBe("fellOff at 3, missed undefined");
  });

  it("ends a consumer that waits when its signal aborts, and counts it no more", async () => {
    const log = createLog(10);
    const controller = new AbortController();
    const reader = log.read({ after: log.position }, controller.signal);
    const next = reader.next();
    expect(log.consumers).toBe(1);
    controller.abort(stopped("enough"));
    expect(await next).toEqual({ done: true, value: undefined });
    expect([log.consumers, log.slowest]).toEqual([0, 0]);
  });

  it("a consumer that never reads costs the others nothing", async () => {
    const log = createLog(100);
    log.read({ after: log.position }, live);
    const reader = log.read({ after: log.position }, live);
    for (let sequence = 1; sequence <= 1_000; sequence++) {
      log.append(some(1));
      expect(brief((await reader.next()).value)).toBe(sequence);
    }
    expect(log.slowest).toBe(1_000);
    expect(log.length).toBe(100);
  });

  it("finds the position of a time", async () => {
    const clock = new FakeClock();
    const log = createLog(10, clock);
    for (let at = 0; at < 5; at++) {
      log.append(some(1));
      await clock.step(60_000);
    }
    expect(log.positionAt(clock.now() - 120_000).sequence).toBe(3);
    expect(log.positionAt(0).sequence).toBe(0);
    expect(log.positionAt(clock.now()).sequence).toBe(5);
  });

  it("gives every consumer all events in order, or the number it missed, at any pace of reading", async () => {
    const step = fc.oneof(
      fc.record({ append: fc.integer({ min: 1, max: 8 }) }),
      fc.record({ read: fc.integer({ min: 0, max: 2 }) }),
    );
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 120 }), async (steps) => {
        const log = createLog(10);
        const readers = [0, 1, 2].map(() => ({ at: 0, reader: log.read({ after: log.position }, live) }));
        for (const step of steps) {
          if ("append" in step) {
            log.append(some(step.append));
            continue;
          }
          const consumer = readers[step.read]!;
          if (consumer.at === log.last) continue;
          const { value } = await consumer.reader.next();
          const kept = log.last - log.length;
          if (consumer.at >= kept) {
            expect(brief(value)).toBe(consumer.at + 1);
          } else {
            expect(brief(value)).toBe(`fellOff at ${log.last}, missed ${log.last - consumer.at}`);
          }
          consumer.at = value!.position.sequence;
        }
      }),
      { numRuns: 200 },
    );
  });
});

describe("cursors", () => {
  it("are read back as they were written", () => {
    const position = { log: "1a2b", sequence: 77 };
    expect(parseCursor(formatCursor(position))).toEqual(position);
  });

  it.each(["", "77", "-1", "a-", "a-1x", "__proto__-1", `a-${"1".repeat(30)}`])("refuses %j", (text) => {
    expect(() => parseCursor(text)).toThrow(/is not a cursor/);
  });
});
