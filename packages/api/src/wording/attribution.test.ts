import { expect, it } from "vitest";
import type { NodePod, PodExplanation } from "../records/index.ts";
import { attributionOf } from "./attribution.ts";

const KNOWN = Date.parse("2026-03-01T12:00:26.937Z");
const LEFT = KNOWN + 15_000;

const gone = (ending: object, lastKnownAt: number | null, startTime: number | null = null) =>
  ({
    ...{ leftAt: LEFT, lastKnownAt, ending: { deletion: null, disruption: null, ...ending } },
    pod: { startTime },
  }) as NodePod;
const requestedAt = (time: string) => ({
  deletion: { requestedAt: Date.parse(time), gracePeriodSeconds: 30 },
});

// A request that was sent during the gap may be executed up to a minute later.
it.each<[string, NodePod, { from: number; to: number }, "other" | "unknown"]>([
  [
    "ended more than a minute before the pod was last seen",
    gone({}, KNOWN),
    { from: 0, to: KNOWN - 60_001 },
    "other",
  ],
  [
    "ended a minute before the pod was last seen",
    gone({}, KNOWN),
    { from: 0, to: KNOWN - 60_000 },
    "unknown",
  ],
  ["ended after the pod was last seen", gone({}, KNOWN), { from: 0, to: KNOWN }, "unknown"],
  ["ended before the pod started", gone({}, KNOWN, KNOWN - 1_000), { from: 0, to: KNOWN - 1_001 }, "other"],
  [
    "ended after the pod had started",
    gone({}, KNOWN, KNOWN - 1_000),
    { from: 0, to: KNOWN - 1_000 },
    "unknown",
  ],
  ["began after the pod had left", gone({}, KNOWN), { from: LEFT + 1, to: LEFT + 2 }, "other"],
  [
    "ended a minute before the second in which the deletion was requested, of which the API server has no parts",
    gone(requestedAt("2026-03-01T12:00:30.900Z"), null),
    { from: 0, to: Date.parse("2026-03-01T11:59:30.000Z") },
    "unknown",
  ],
  [
    "ended more than a minute before that second",
    gone(requestedAt("2026-03-01T12:00:30.900Z"), null),
    { from: 0, to: Date.parse("2026-03-01T11:59:29.999Z") },
    "other",
  ],
])("a pod that was not selected, with a gap in the records that %s", (_, history, gap, by) => {
  const coverage = { oldest: 0, requests: 0, gaps: [{ ...gap, why: "the disk was full" }] };
  const explanation = { rounds: [], steps: [], events: [], history, coverage } as unknown as PodExplanation;
  expect(attributionOf(explanation).by).toBe(by);
});

it("a pod with steps of an eviction, of which neither the selection nor the outcome is recorded, may have been evicted by it", () => {
  const coverage = { oldest: 0, requests: 0, gaps: [] };
  const steps = [{ uid: "web", at: KNOWN, message: "POST eviction: accepted" }];
  const history = gone({}, null);
  const explanation = { rounds: [], steps, events: [], history, coverage } as unknown as PodExplanation;
  expect(attributionOf(explanation)).toEqual({
    by: "unknown",
    why: "steps of an eviction are recorded, but not how it ended",
  });
});

it("whoever deleted a pod after its containers may have been stopped is known from the records of that time", () => {
  const outcome = { uid: "web", result: "unknown", sent: true, stopsContainers: true, message: "x" };
  const rounds = [{ id: 1, at: 0, victim: null, outcome }];
  const coverage = { oldest: 0, requests: 0, gaps: [] };
  const of = (history: NodePod) =>
    attributionOf({ rounds, steps: [], events: [], history, coverage } as unknown as PodExplanation).by;
  expect(of(gone({}, null))).toBe("other");
  expect(of({ ...gone({}, null), leftAt: null })).toBe("unknown");
});
