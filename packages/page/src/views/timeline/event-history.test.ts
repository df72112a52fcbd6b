import type { ApiAnswers } from "@nodekeeper/api/openapi";
import { until } from "@nodekeeper/testing/until";
import { describe, expect, it } from "vitest";
import { Refusal, Unreachable } from "../../api.ts";
import type { LifecycleEvent } from "../../live.ts";
import { EventHistory, type EventReader, MOST_EVENTS } from "./event-history.ts";
import { eventAt } from "./testing.ts";

/** A log whose event n was at n seconds; the events before `first` have expired. */
class FakeLog implements EventReader {
  id = "log";
  first = 1;
  last = 0;
  time = 0;
  failure: Error | undefined;
  listed: ApiAnswers["pods"]["items"][number]["containers"] = [];
  readonly asked: string[] = [];

  at = (sequence: number): LifecycleEvent => eventAt(sequence);

  async events(
    query: Record<string, string | number | undefined>,
    signal: AbortSignal,
  ): Promise<ApiAnswers["events"]> {
    const { since, cursor, limit = 500 } = query;
    this.asked.push(cursor === undefined ? `since ${since}` : `after ${cursor}`);
    await Promise.resolve();
    signal.throwIfAborted();
    if (this.failure) throw this.failure;
    const after =
      cursor === undefined
        ? Math.min(Math.max(Math.ceil(Number(since) / 1_000), this.first) - 1, this.last)
        : Number(`${cursor}`.split("-")[1]);
    if (cursor !== undefined && (after + 1 < this.first || !`${cursor}`.startsWith(this.id)))
      return {
        items: [{ kind: "snapshot", cursor: `${this.id}-${this.last}`, pods: [] }],
        cursor: `${this.id}-${this.last}`,
        end: true,
        problems: [],
      };
    const last = Math.min(after + Number(limit), this.last);
    const items = Array.from({ length: Math.max(last - after, 0) }, (_, index) => {
      const event = this.at(after + index + 1);
      return { kind: "event" as const, cursor: `${this.id}-${event.sequence}`, event };
    });
    return { items, cursor: `${this.id}-${Math.max(last, after)}`, end: last === this.last, problems: [] };
  }

  async pods(): Promise<ApiAnswers["pods"]> {
    if (this.failure) throw this.failure;
    const pod = { ...eventAt(1).pod, ips: [], sandboxes: [], containers: this.listed, observedAt: 0 };
    return { items: [pod], cursor: `${this.id}-${this.last}`, listedAt: this.time, problems: [] };
  }

  now(): number {
    return this.time;
  }
}

const historyOf = (log: FakeLog) => new EventHistory(log, () => {});

/** A history of a log with this many events. */
function historyWith(last: number) {
  const log = new FakeLog();
  log.last = last;
  return { log, history: historyOf(log) };
}
const barCount = (history: EventHistory) =>
  [...history.pods.values()].reduce((sum, { bars }) => sum + bars.size, 0);
const read = (history: EventHistory) => until("the history is read", () => !history.isReading);

describe("the history of events", () => {
  it("reads what is before the stream in pages, once", async () => {
    const { log, history } = historyWith(2_500);
    history.takeLive([]);
    history.want({ from: 400_000, to: 2_600_000, isLive: true });
    await read(history);
    expect(barCount(history)).toBe(2_101);
    expect(history.logStart).toBe(1_000);
    const asked = log.asked.length;
    history.takeLive([eventAt(2_501), eventAt(2_502)]);
    history.takeLive([eventAt(2_501), eventAt(2_502), eventAt(2_503)]);
    history.want({ from: 401_000, to: 2_601_000, isLive: true });
    expect(barCount(history)).toBe(2_104);
    expect(log.asked.length).toBe(asked);
    expect(history.knownSince).toBe(400_000);
  });

  it("reads the events between history and stream that neither had", async () => {
    const { log, history } = historyWith(20);
    history.want({ from: 0, to: 100_000, isLive: true });
    await read(history);
    log.last = 26;
    history.takeLive([eventAt(25), eventAt(26)]);
    history.want({ from: 1_000, to: 101_000, isLive: true });
    await read(history);
    expect(barCount(history)).toBe(26);
  });

  it("knows since when nothing happened", async () => {
    const { history } = historyWith(100);
    history.want({ from: 200_000, to: 300_000, isLive: true });
    await read(history);
    expect(history.knownSince).toBe(200_000);
    // Earlier ones are not read yet.
    history.want({ from: 150_000, to: 250_000, isLive: false });
    expect(history.knownSince).toBe(200_000);
    expect(history.isFull).toBe(false);
    await read(history);
    expect(history.knownSince).toBe(150_000);
  });

  it("reads older ones when they are wanted, only those", async () => {
    const { log, history } = historyWith(3_000);
    history.want({ from: 2_900_000, to: 3_000_000, isLive: true });
    await read(history);
    log.asked.length = 0;
    history.want({ from: 2_800_000, to: 2_900_000, isLive: false });
    await read(history);
    expect(barCount(history)).toBe(201);
    expect(log.asked.filter((asked) => asked !== "since 0")).toEqual(["since 2800000"]);
  });

  it("cancels what is not wanted any more", async () => {
    const { log, history } = historyWith(10_000);
    history.want({ from: 9_990_000, to: 10_000_000, isLive: true });
    await read(history);
    history.want({ from: 1_000, to: 11_000, isLive: false });
    expect(history.isReading).toBe(true);
    history.want({ from: 9_990_000, to: 10_000_000, isLive: true });
    expect(history.isReading).toBe(false);
    log.asked.length = 0;
    await new Promise(setImmediate);
    expect(log.asked).toEqual([]);
  });

  it("keeps a bounded number: the newest while live, the oldest of a past stretch", async () => {
    const log = new FakeLog();
    log.last = 3 * MOST_EVENTS;
    const history = historyOf(log);
    const now = log.last * 1_000;
    history.want({ from: 0, to: now, isLive: true });
    await read(history);
    expect(barCount(history)).toBeLessThanOrEqual(MOST_EVENTS);
    expect(barCount(history)).toBeGreaterThan(MOST_EVENTS / 2);
    expect(history.isFull).toBe(true);
    expect(history.knownSince).toBeGreaterThan(now / 2);
    let asked = log.asked.length;
    history.want({ from: 0, to: now, isLive: true });
    expect(history.isReading).toBe(false);

    history.want({ from: 5_000_000, to: 6_000_000, isLive: false });
    await read(history);
    expect(history.knownSince).toBe(5_000_000);
    expect(history.knownUntil).toBeGreaterThan(6_000_000);
    expect(barCount(history)).toBeLessThanOrEqual(MOST_EVENTS);
    expect(log.asked.length - asked).toBeLessThan(40);
    asked = log.asked.length;
    history.want({ from: 5_100_000, to: 6_100_000, isLive: false });
    expect(history.isReading).toBe(false);

    history.want({ from: now - 600_000, to: now, isLive: true });
    await read(history);
    expect(history.knownSince).toBe(now - 600_000);
    expect(log.asked.length - asked).toBeLessThan(4);
  });

  it("lists the pods again once events were dropped: what they ended must not be shown as running", async () => {
    const log = new FakeLog();
    log.last = 10;
    const running = {
      id: "id-5",
      name: "main",
      kind: "container",
      state: "running",
      attempt: 0,
      startedAt: 1,
    } as const;
    log.listed = [{ ...running, reason: "", message: "", image: "", imageRef: "" }];
    const history = historyOf(log);
    const all = { from: 1_000, to: 20_000, isLive: true };
    history.want(all);
    await read(history);
    expect([...history.pods.values()][0]?.bars.get("id-5")?.to).toBeUndefined();
    const container = { id: "id-5", name: "main", kind: "container" } as const;
    log.listed = [];
    log.last = MOST_EVENTS + 100;
    history.takeLive([eventAt(11, { type: "ContainerDied", container })]);
    history.takeLive(Array.from({ length: MOST_EVENTS }, (_, index) => eventAt(index + 12)));
    history.want({ from: log.last * 1_000 - 20_000, to: log.last * 1_000, isLive: true });
    await read(history);
    expect([...history.pods.values()][0]?.bars.get("id-5")).toBeUndefined();
  });

  describe("say how a container ended that the runtime no longer lists", () => {
    const container = { id: "id-5", name: "main", kind: "container" } as const;
    const exitAt = (sequence: number) => eventAt(sequence, { type: "ContainerDied", container, exitCode: 0 });
    /** A log in which the container that starts at 5 s exits. `ends`: how its bar ended, at each change. */
    function historyWithExit(last: number, exit: number) {
      const log = new FakeLog();
      log.last = last;
      log.time = last * 1_000;
      log.at = (sequence) => (sequence === exit ? exitAt(exit) : eventAt(sequence));
      const ends: string[] = [];
      const bar = () => history.pods.get("uid-web")?.bars.get("id-5");
      const history = new EventHistory(log, () => {
        const { to, end } = bar() ?? {};
        ends.push(to === undefined ? "" : `${end} ${to / 1_000}`);
      });
      return { history, bar, ends };
    }

    it("by its exit, and before that is read, not at all", async () => {
      const { history, ends } = historyWithExit(2_500, 2_200);
      history.want({ from: 0, to: 2_500_000, isLive: true });
      await read(history);
      expect([...new Set(ends)]).toEqual(["", "Known until 1000", "Known until 2000", "Exited 2200"]);
    });

    it("by its exit, if the stream has it just after the list", async () => {
      const log = new FakeLog();
      const last = MOST_EVENTS + 1;
      log.last = last;
      let live: LifecycleEvent[] = [];
      const history = new EventHistory(log, () => history.takeLive(live.splice(0)));
      const newest = { from: (last - 10) * 1_000, to: last * 1_000, isLive: true };
      // So many that some are dropped, and the pods are listed again.
      history.takeLive(Array.from({ length: last }, (_, index) => eventAt(index + 1)));
      const died = { id: `id-${last - 5}`, name: "main", kind: "container" } as const;
      live = [eventAt(last + 1, { type: "ContainerDied", container: died, exitCode: 0 })];
      log.last++;
      history.want(newest);
      await read(history);
      expect(history.pods.get("uid-web")?.bars.get(died.id)).toMatchObject({ exitCode: 0, end: "Exited" });
    });

    it("not at all, if its exit is beyond what fits", async () => {
      const { history, bar } = historyWithExit(2 * MOST_EVENTS, 2 * MOST_EVENTS - 1);
      history.want({ from: 0, to: 2 * MOST_EVENTS * 1_000, isLive: false });
      await read(history);
      expect(bar()).toMatchObject({ end: "Known until", to: history.knownUntil });
    });
  });

  it("starts over where the log was replaced or has expired meanwhile", async () => {
    const { log, history } = historyWith(20);
    history.want({ from: 0, to: 100_000, isLive: true });
    await read(history);
    log.id = "other";
    log.last = 5;
    history.reset();
    history.want({ from: 0, to: 100_000, isLive: true });
    await read(history);
    expect(barCount(history)).toBe(5);
  });

  it("tries again where the agent does not answer, and not where lifecycle is off", async () => {
    const log = new FakeLog();
    log.last = 20;
    log.failure = new Unreachable("no answer");
    const history = historyOf(log);
    const all = { from: 0, to: 100_000, isLive: true };
    history.want(all);
    await read(history);
    expect(history.error).toBeInstanceOf(Unreachable);
    log.failure = undefined;
    history.want(all);
    expect(history.isReading).toBe(false);
    log.time = 5_000;
    history.want(all);
    await read(history);
    expect(history.error).toBeUndefined();
    expect(barCount(history)).toBe(20);

    const off = new FakeLog();
    off.failure = new Refusal(404, "lifecycle is off (lifecycle.enabled)", undefined);
    const none = historyOf(off);
    none.want(all);
    await read(none);
    off.time = 60_000;
    none.want(all);
    expect(none.isReading).toBe(false);
  });
});
