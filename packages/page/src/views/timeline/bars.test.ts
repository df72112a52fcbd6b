import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { LifecycleEvent } from "../../live.ts";
import { addEvents, type Bar, barsOf, endOf, isWithin, type PodStatus, type Pods } from "./bars.ts";
import { type Span, withSpan } from "./spans.ts";
import { barsOfAll, eventAt } from "./testing.ts";

const main = { id: "c1", name: "main", kind: "container" } as const;
const listedPod = (containers: Partial<PodStatus["containers"][number]>[]): PodStatus => ({
  uid: "uid-web",
  namespace: "default",
  name: "web",
  ips: [],
  sandboxes: [],
  observedAt: 0,
  containers: containers.map((container) => ({
    ...main,
    ...{ state: "running", attempt: 0, reason: "", message: "", image: "", imageRef: "" },
    ...container,
  })),
});

const onlyBar = (pods: Pods): Bar => {
  const bars = [...pods.values()].flatMap((pod) => [...pod.bars.values()]);
  expect(bars).toHaveLength(1);
  return bars[0]!;
};

describe("bars of containers", () => {
  it("last from start to exit, with the exit code and the runtime's reason", () => {
    const exit = eventAt(9, { type: "ContainerDied", container: main, exitCode: 137, reason: "OOMKilled" });
    const bar = onlyBar(barsOfAll([eventAt(2, { container: main }), exit]));
    expect(bar).toMatchObject({ from: 2_000, to: 9_000, exitCode: 137, reason: "OOMKilled" });
    expect(endOf(bar)).toBe("oom");
  });

  it("begin before what is known where only the exit is known", () => {
    const bar = onlyBar(barsOfAll([eventAt(9, { type: "ContainerDied", container: main, exitCode: 0 })]));
    expect(bar).toMatchObject({ from: undefined, to: 9_000 });
    expect(endOf(bar)).toBe("completed");
    expect(isWithin(bar, { from: 0, to: 1 })).toBe(true);
    expect(isWithin(bar, { from: 9_001, to: 9_002 })).toBe(false);
  });

  it("take starts, restart counts and containers without events from what the runtime lists", () => {
    const pods = barsOfAll([eventAt(9, { type: "ContainerDied", container: main })], {
      pods: [
        listedPod([
          { state: "exited", startedAt: 500, finishedAt: 8_900, exitCode: 3, attempt: 4 },
          { id: "c2", startedAt: 700 },
        ]),
      ],
      sequence: 9,
      at: 10_000,
    });
    const bars = [...pods.get("uid-web")!.bars.values()];
    expect(bars[0]).toMatchObject({ id: "c1", from: 500, to: 9_000, exitCode: 3, attempt: 4 });
    expect(bars[1]).toMatchObject({ id: "c2", from: 700, to: undefined });
  });

  describe("are oldest first, though the runtime's list is newest first", () => {
    const c1 = { id: "c1", state: "exited", startedAt: 1_000, finishedAt: 1_500 } as const;
    const c2 = { id: "c2", state: "exited", startedAt: 2_000, finishedAt: 2_500 } as const;
    const c3 = { id: "c3", startedAt: 3_000 };
    const ids = ["c1", "c2", "c3"];
    const [start, exit] = (["ContainerStarted", "ContainerDied"] as const).map(
      (type) => (seconds: number, id: string) => eventAt(seconds, { type, container: { ...main, id } }),
    );
    it.each([
      ["and no event is known", [], [c3, c2, c1]],
      ["and some events are known", [start!(2, "c2")], [c3, c2, c1]],
      [
        "and exits of one relist are not in order",
        [exit!(3, "c2"), exit!(3, "c1"), start!(3, "c3")],
        [c3, c2, c1],
      ],
      ["and starts are equal", [], [c3, { ...c2, startedAt: 1_000 }, c1]],
      ["and it has not the last", [start!(1, "c1"), exit!(2, "c2"), exit!(3, "c3")], [c1]],
    ])("%s", (_, events, containers) => {
      const pods = barsOfAll(events, { pods: [listedPod(containers)], sequence: 1, at: 1_000 });
      expect([...pods.get("uid-web")!.bars.keys()]).toEqual(ids);
    });
  });

  it("end when the runtime has no such container any more, where the exit was missed", () => {
    const listed = { pods: [listedPod([])], sequence: 50, at: 60_000 };
    expect(onlyBar(barsOfAll([eventAt(2, { container: main })], listed))).toMatchObject({
      to: 60_000,
      end: "Found missing",
    });
    // Started after that list.
    expect(onlyBar(barsOfAll([eventAt(51, { container: main })], listed))).toMatchObject({ to: undefined });
  });

  it("are known until the last event that was read, where those up to the list were not", () => {
    const listed = { pods: [listedPod([])], sequence: 50, at: 60_000 };
    const read = {
      last: 7,
      events: [eventAt(2, { container: main }), eventAt(7, { type: "PodSync", container: undefined })],
    };
    const newer = { last: 60, events: [eventAt(51, { container: { ...main, id: "c2" } })] };
    const pods = barsOf([read, newer], listed);
    const [bar, later] = [...pods.get("uid-web")!.bars.values()];
    expect(bar).toMatchObject({ id: "c1", to: 7_000, end: "Known until" });
    expect(later).toMatchObject({ id: "c2", to: undefined });
    // Its exit has been read.
    const exit = eventAt(40, { type: "ContainerDied", container: main, exitCode: 0 });
    const whole = barsOf([read, { last: 60, events: [exit, ...newer.events] }], listed);
    expect(whole.get("uid-web")!.bars.get("c1")).toMatchObject({ to: 40_000, exitCode: 0, end: "Exited" });
  });

  it("are known until then, also of a sandbox that is listed as exited: the list has no time of it", () => {
    const sandbox = { id: "s1", name: "", kind: "sandbox" } as const;
    const pod = listedPod([{ ...sandbox, state: "exited" }]);
    const listed = {
      pods: [{ ...pod, containers: [], sandboxes: pod.containers }],
      sequence: 50,
      at: 60_000,
    };
    const bar = onlyBar(barsOf([{ last: 2, events: [eventAt(2, { container: sandbox })] }], listed));
    expect(bar).toMatchObject({ to: 2_000, end: "Known until" });
  });

  it("end as the runtime lists them, where the exit has not been read", () => {
    const exited = {
      state: "exited",
      startedAt: 2_000,
      finishedAt: 8_000,
      exitCode: 3,
      reason: "Error",
    } as const;
    const listed = { pods: [listedPod([exited])], sequence: 50, at: 60_000 };
    const bar = onlyBar(barsOf([{ last: 7, events: [eventAt(2, { container: main })] }], listed));
    expect(bar).toMatchObject({ from: 2_000, to: 8_000, exitCode: 3, reason: "Error", end: "Exited" });
  });

  it("are the same however events are split between history and stream, and never end before they begin", () => {
    const event = fc.record({
      type: fc.constantFrom("ContainerStarted", "ContainerDied", "ContainerRemoved", "PodSync"),
      // Any order of times: the clock jumps.
      at: fc.integer({ min: 0, max: 1_000 }),
      container: fc.integer({ min: 0, max: 5 }),
      exitCode: fc.option(fc.integer({ min: 0, max: 255 }), { nil: undefined }),
    });
    const cuts = fc.array(fc.integer({ min: 0, max: 60 }), { maxLength: 4 });
    fc.assert(
      fc.property(fc.array(event, { maxLength: 60 }), cuts, fc.nat(60), (drawn, pages, liveFrom) => {
        const events = drawn.map(({ type, at, container, exitCode }, index): LifecycleEvent => {
          const pod = { uid: `p${container % 2}`, namespace: "default", name: `p${container % 2}` };
          const identity = { id: `c${container}`, name: `n${container}`, kind: "container" } as const;
          return eventAt(index + 1, {
            type,
            at,
            pod,
            container: type === "PodSync" ? undefined : identity,
            exitCode,
          });
        });
        const whole = barsOfAll(events);
        for (const { bars } of whole.values())
          for (const { from, to } of bars.values())
            if (from !== undefined && to !== undefined) expect(to).toBeGreaterThanOrEqual(from);

        // Pages that overlap, in any order.
        const page = (after: number, last: number): Span => ({
          since: 0,
          after,
          last,
          events: events.slice(after, last),
        });
        const bounds = [0, ...pages, events.length].map((cut) => Math.min(cut, events.length));
        let spans: Span[] = [];
        for (let at = 1; at < bounds.length; at++)
          spans = withSpan(
            spans,
            page(Math.min(bounds[at - 1]!, bounds[at]!), Math.max(bounds[at - 1]!, bounds[at]!)),
          );
        spans = withSpan(spans, page(0, events.length));
        expect(barsOf(spans)).toEqual(whole);

        // History first, then the stream's.
        const cut = Math.min(liveFrom, events.length);
        const pods = barsOfAll(events.slice(0, cut));
        for (const live of events.slice(cut)) addEvents(pods, [live]);
        expect(pods).toEqual(whole);
      }),
    );
  });
});
