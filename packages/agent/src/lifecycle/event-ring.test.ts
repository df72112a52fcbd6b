import { queryObjects } from "node:v8";
import type { ContainerIdentity } from "@nodekeeper/api/lifecycle";
import fc from "fast-check";
import { expect, it } from "vitest";
import { EventRing } from "./event-ring.ts";
import type { NewEvent, PodLifecycleEvent } from "./events.ts";
import { PackedEvents } from "./packed-events.ts";

const container: ContainerIdentity = { id: "c1", name: "app", kind: "container" };
const someEvent: fc.Arbitrary<NewEvent> = fc.record({
  type: fc.constantFrom<NewEvent["type"][]>(
    "ContainerStarted",
    "ContainerDied",
    "ContainerRemoved",
    "PodSync",
  ),
  pod: fc.record({
    uid: fc.string(),
    namespace: fc.constantFrom("default", "kube-system"),
    name: fc.string(),
  }),
  container: fc.constantFrom<(ContainerIdentity | undefined)[]>(
    undefined,
    container,
    { ...container, kind: "sandbox" },
    { ...container, id: "c2" },
  ),
  exitCode: fc.constantFrom(undefined, 0, 137, -1),
  reason: fc.constantFrom("", "OOMKilled", "Error"),
});
// Enough for events that are packed, and for packed ones that are dropped.
const steps = fc.array(
  fc.tuple(someEvent, fc.integer({ min: 1, max: 400 }), fc.integer({ min: -50, max: 100 })),
  {
    minLength: 1,
    maxLength: 30,
  },
);

it("has the last events as they were put, as many as its capacity, whatever the wall clock does", () => {
  fc.assert(
    fc.property(steps, fc.constantFrom(1, 3, 600, 2_000, 100_000), (steps, capacity) => {
      const ring = new EventRing(capacity);
      const all: PodLifecycleEvent[] = [];
      let at = 1_000;
      for (const [event, times, passedMs] of steps) {
        for (let time = 0; time < times; time++) {
          at += passedMs;
          all.push({ ...event, sequence: all.length + 1, at });
          ring.put(all.length, at, event);
        }
      }
      const kept = all.slice(-capacity);
      expect([ring.length, ring.first]).toEqual([kept.length, kept[0]!.sequence]);
      expect(kept.map(({ sequence }) => ring.get(sequence))).toEqual(kept);
      expect([ring.get(ring.first - 1), ring.get(all.length + 1)]).toEqual([undefined, undefined]);
      for (const time of [0, 1_000, at, at + 1, ...kept.slice(0, 3).map((each) => each.at + 1)]) {
        const found = kept.find((each) => each.at >= time);
        expect(ring.firstSince(time)).toBe(found?.sequence);
      }
    }),
    { numRuns: 50 },
  );
});

it("starts over after a gap in the sequence numbers", () => {
  const ring = new EventRing(5_000);
  const [event] = fc.sample(someEvent, 1);
  for (let sequence = 1; sequence <= 3_000; sequence++) ring.put(sequence, sequence, event!);
  ring.put(4_000, 4_000, event!);
  expect([ring.length, ring.first, ring.get(3_000), ring.firstSince(0)]).toEqual([
    1,
    4_000,
    undefined,
    4_000,
  ]);
  expect(ring.get(4_000)).toEqual({ ...event, sequence: 4_000, at: 4_000 });
});

it("drops packed events that are all beyond its capacity", () => {
  const others = queryObjects(PackedEvents, { format: "count" });
  const ring = new EventRing(600);
  const event: NewEvent = {
    type: "PodSync",
    pod: { uid: "uid", namespace: "default", name: "web" },
    container: undefined,
    exitCode: undefined,
    reason: "",
  };
  for (let sequence = 1; sequence <= 20_000; sequence++) ring.put(sequence, sequence, event);
  expect(queryObjects(PackedEvents, { format: "count" }) - others).toBe(1);
  expect(ring.length).toBe(600);
});
