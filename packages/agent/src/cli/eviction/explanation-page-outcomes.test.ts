import { describe, expect, it } from "vitest";
import { evictPod } from "../../eviction/testing/rounds.ts";
import { pressure, START, type Story, verdictAfter } from "../testing/pod-story.ts";

describe("the page about a pod", () => {
  it.each<[string, (story: Story) => void, string]>([
    [
      "a PodDisruptionBudget refused it",
      (story) => {
        story.play({ pressure: pressure("web") });
        story.rounds.outcomes = [
          {
            uid: "web",
            result: "failed",
            message: "429: PodDisruptionBudget default/web allows no disruption now",
          },
        ];
        story.play({ pressure: pressure("web") });
      },
      "Selected at 2026-03-01T12:00:00.000Z (round 1) but not evicted: 429: PodDisruptionBudget default/web allows no disruption now. Requested by pressure: memory 94.1 > threshold 90.",
    ],
    [
      "it was withdrawn",
      (story) => {
        story.play({ pressure: pressure("web") });
        story.rounds.outcomes = [
          { uid: "web", result: "withdrawn", message: "the threshold is no longer met" },
        ];
        story.play({});
      },
      "Selected at 2026-03-01T12:00:00.000Z (round 1), withdrawn before its eviction was accepted: the threshold is no longer met. Requested by pressure: memory 94.1 > threshold 90.",
    ],
    [
      "it is in progress",
      (story) => story.play({ pressure: pressure("web") }).step(50, "POST eviction: 429, retry in 10 s"),
      "Its eviction started at 2026-03-01T12:00:00.000Z (round 1) and has not ended; last: POST eviction: 429, retry in 10 s. Requested by pressure: memory 94.1 > threshold 90.",
    ],
    [
      "it failed, and was evicted at the second attempt",
      (story) => {
        story.play({ pressure: pressure("web") });
        story.rounds.outcomes = [{ uid: "web", result: "failed", message: "throttled" }];
        story.play({});
        story.rounds.pass(3_600);
        story.play({ force: { pods: [evictPod("web", { force: true, reason: "too old" })] } });
        story.rounds.outcomes = [{ uid: "web", result: "terminated", message: "pod deleted" }];
        story.play({});
      },
      "Evicted at 2026-03-01T13:00:10.000Z (round 3): requested by force: too old.",
    ],
    [
      "it was deleted long after its grace period, and not by another client",
      (story) => {
        story.play({ pressure: pressure("web") });
        story.rounds.outcomes = [
          { uid: "web", result: "overdue", sent: true, message: "still terminating after its grace period" },
        ];
        story.play({}).left(90_000);
      },
      "Evicted at 2026-03-01T12:00:00.000Z (round 1), but still terminating after its grace period. Requested by pressure: memory 94.1 > threshold 90. Pod deleted at 2026-03-01T12:01:30.000Z.",
    ],
    [
      "another client deleted it before its eviction was sent",
      (story) => {
        story.play({ pressure: pressure("web") });
        story.rounds.outcomes = [
          { uid: "web", result: "superseded", message: "pod deleted before its eviction was sent" },
        ];
        story.play({}).left(2_000);
      },
      "Selected at 2026-03-01T12:00:00.000Z (round 1) but not evicted by Nodekeeper: pod deleted before its eviction was sent. Requested by pressure: memory 94.1 > threshold 90. Pod deleted at 2026-03-01T12:00:02.000Z, not by Nodekeeper.",
    ],
    [
      "its containers were stopped before, and another client deleted it before its next eviction was sent",
      (story) => {
        story.play({ pressure: pressure("web") });
        const stopped = { sent: true, acceptedAt: START + 1_000, message: "stopped main" };
        story.rounds.outcomes = [{ uid: "web", result: "terminated", ...stopped }];
        story.play({});
        story.play({ pressure: pressure("web") });
        const message = "pod deleted before its eviction was sent";
        story.rounds.outcomes = [{ uid: "web", result: "superseded", sent: false, message }];
        story.play({}).left(20_000);
      },
      "Selected at 2026-03-01T12:00:10.000Z (round 3) but not evicted by Nodekeeper: pod deleted before its eviction was sent. Requested by pressure: memory 94.1 > threshold 90. Pod deleted at 2026-03-01T12:00:20.000Z, not by Nodekeeper.",
    ],
    [
      "it left, was overdue, and its end has its own outcome",
      (story) => {
        story.play({ pressure: pressure("web") });
        const times = { acceptedAt: START + 100 };
        story.rounds.outcomes = [
          { uid: "web", result: "overdue", sent: true, ...times, endedAt: START + 500, message: "overdue" },
          { uid: "web", result: "terminated", ...times, endedAt: START + 900, message: "pod deleted" },
        ];
        story.play({}).left(900);
      },
      "Evicted at 2026-03-01T12:00:00.100Z (round 1), pod deleted after 0.8 s: requested by pressure: memory 94.1 > threshold 90.",
    ],
    [
      "it was evicted, and its end was found after a restart of the agent",
      (story) => {
        story.play({ pressure: pressure("web") });
        story.rounds.outcomes = [
          { uid: "web", result: "terminated", sent: true, acceptedAt: START + 100, message: "pod deleted" },
        ];
        story.play({}).left(7_200_000);
      },
      "Evicted at 2026-03-01T12:00:00.100Z (round 1), pod deleted: requested by pressure: memory 94.1 > threshold 90.",
    ],
    [
      "a PodDisruptionBudget refused it and another client deleted it",
      (story) => {
        story.play({ pressure: pressure("web") });
        story.rounds.outcomes = [{ uid: "web", result: "failed", message: "no disruption is allowed" }];
        story.play({}).left(90_000);
      },
      "Selected at 2026-03-01T12:00:00.000Z (round 1) but not evicted: no disruption is allowed. Requested by pressure: memory 94.1 > threshold 90. Pod deleted at 2026-03-01T12:01:30.000Z, not by Nodekeeper.",
    ],
    [
      "it is queued",
      (story) => {
        story.rounds.policy.burst = 0;
        story.play({ force: { pods: [evictPod("web", { force: true })] } });
      },
      "Not evicted: force requested it, but burst limit of this round reached: the pod is queued.",
    ],
    [
      "a threshold was met but no plugin named it",
      (story) => story.play({ pressure: pressure("db") }),
      "Not evicted: no plugin requested it, though a threshold was met.",
    ],
    ["nothing is recorded", () => {}, "Not evicted: no plugin requested it."],
  ])("states in one sentence that %s", (_name, play, expected) => {
    expect(verdictAfter(play)).toBe(expected);
  });
});
