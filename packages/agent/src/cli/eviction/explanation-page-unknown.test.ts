import { describe, expect, it } from "vitest";
import { evictPod } from "../../eviction/testing/rounds.ts";
import { finish, pressure, START, type Story, verdictAfter } from "../testing/pod-story.ts";

describe("the page about a pod", () => {
  it.each<[string, (story: Story) => void, string]>([
    [
      "whether its request was accepted is not recorded",
      (story) => {
        story.play({ pressure: pressure("web") });
        const message = "pod deleted; its request may have been accepted: 503";
        story.rounds.outcomes = [{ uid: "web", result: "unknown", sent: true, message }];
        story.play({}).left(2_000, "EvictionByEvictionAPI");
      },
      "Selected at 2026-03-01T12:00:00.000Z (round 1); whether Nodekeeper evicted it is not known: pod deleted; its request may have been accepted: 503. Requested by pressure: memory 94.1 > threshold 90. Pod deleted at 2026-03-01T12:00:02.000Z. Evicted through the Eviction API: why.",
    ],
    ...(["failed", "withdrawn"] as const).map((result): [string, (story: Story) => void, string] => [
      `its eviction ${result} without a response to its request, and it ended later`,
      (story) => {
        story.play({ pressure: pressure("web") });
        story.rounds.outcomes = [{ uid: "web", result, sent: true, message: "no response within 10 s" }];
        story.play({}).left(20_000);
      },
      "Selected at 2026-03-01T12:00:00.000Z (round 1); whether Nodekeeper evicted it is not known: no response within 10 s. Requested by pressure: memory 94.1 > threshold 90. Pod deleted at 2026-03-01T12:00:20.000Z; whether by Nodekeeper is not known: a request to evict it was sent before.",
    ]),
    [
      "an earlier request had no response, and its next eviction was withdrawn before one was sent",
      (story) => {
        story.play({ pressure: pressure("web") });
        story.rounds.outcomes = [{ uid: "web", result: "withdrawn", sent: true, message: "no response" }];
        story.play({ pressure: pressure("web") });
        story.rounds.outcomes = [
          { uid: "web", result: "withdrawn", sent: false, message: "the threshold is no longer met" },
        ];
        story.play({}).left(20_000, "EvictionByEvictionAPI");
      },
      "Selected at 2026-03-01T12:00:05.000Z (round 2), withdrawn before its eviction was accepted: the threshold is no longer met. Requested by pressure: memory 94.1 > threshold 90. Pod deleted at 2026-03-01T12:00:20.000Z; whether by Nodekeeper is not known: a request to evict it was sent before. Evicted through the Eviction API: why.",
    ],
    [
      "an earlier request had no response, and an agent that did not know it took its end for another client's",
      (story) => {
        story.play({ pressure: pressure("web") });
        story.rounds.outcomes = [{ uid: "web", result: "withdrawn", sent: true, message: "no response" }];
        story.play({ pressure: pressure("web") });
        const message = "pod deleted before its eviction was sent";
        story.rounds.outcomes = [{ uid: "web", result: "superseded", sent: false, message }];
        story.play({}).left(20_000);
      },
      "Selected at 2026-03-01T12:00:05.000Z (round 2); whether Nodekeeper evicted it is not known: pod deleted before its eviction was sent. Requested by pressure: memory 94.1 > threshold 90. Pod deleted at 2026-03-01T12:00:20.000Z; whether by Nodekeeper is not known: a request to evict it was sent before.",
    ],
    [
      "an earlier request had no response, and its next eviction was refused",
      (story) => {
        story.play({ pressure: pressure("web") });
        const before = { sent: false, sentBefore: true };
        story.rounds.outcomes = [{ uid: "web", result: "failed", ...before, message: "refused" }];
        story.play({}).left(20_000);
      },
      "Selected at 2026-03-01T12:00:00.000Z (round 1); whether Nodekeeper evicted it is not known: refused. Requested by pressure: memory 94.1 > threshold 90. Pod deleted at 2026-03-01T12:00:20.000Z; whether by Nodekeeper is not known: a request to evict it was sent before.",
    ],
    [
      "whether its request was accepted is not recorded, nor is the round that selected it",
      (story) => {
        const message = "pod deleted; its request may have been accepted: 503";
        story.rounds.outcomes = [{ uid: "web", result: "unknown", sent: true, message }];
        story.play({}).left(2_000, "EvictionByEvictionAPI");
      },
      "Pod deleted at 2026-03-01T12:00:02.000Z; whether by Nodekeeper is not known: pod deleted; its request may have been accepted: 503. Evicted through the Eviction API: why.",
    ],
    [
      "its containers may have been stopped, it runs, and the round that selected it is not recorded",
      (story) => {
        const message = "containers were not stopped, or were restarted: main";
        story.rounds.outcomes = [
          { uid: "web", result: "failed", sent: true, stopsContainers: true, message },
        ];
        story.play({});
      },
      "Given up, not known whether evicted by Nodekeeper: containers were not stopped, or were restarted: main. The round that selected it is not recorded.",
    ],
    [
      "it was evicted, and the round that selected it is not recorded",
      (story) => {
        const accepted = { sent: true, acceptedAt: START + 1_000, endedAt: START + 2_000 };
        story.rounds.outcomes = [{ uid: "web", result: "terminated", message: "pod deleted", ...accepted }];
        story.play({}).left(2_000, "EvictionByEvictionAPI");
      },
      "Evicted at 2026-03-01T12:00:01.000Z: pod deleted. The round that selected it is not recorded. Pod deleted at 2026-03-01T12:00:02.000Z.",
    ],
    [
      "its deletion was first seen after a gap, within the second in which it was requested",
      (story) => {
        story.play({}).left(2_400, "EvictionByEvictionAPI");
        story.explanation.history!.ending.disruption!.at = START + 2_350;
        story.explanation.coverage.gaps = [{ from: START, to: START + 2_300, why: "the disk was full" }];
      },
      "Pod deleted at 2026-03-01T12:00:02.400Z; whether by Nodekeeper is not known: records are missing between 2026-03-01T12:00:00.000Z and 2026-03-01T12:00:02.300Z: the disk was full. Evicted through the Eviction API: why.",
    ],
    [
      "neither the pod nor the round that selected it is recorded",
      (story) => {
        const message = "pod deleted; its request may have been accepted: 503";
        story.rounds.outcomes = [{ uid: "web", result: "unknown", sent: true, message }];
        story.play({});
        story.explanation.history = null;
      },
      "Not known whether evicted by Nodekeeper: pod deleted; its request may have been accepted: 503. The round that selected it is not recorded.",
    ],
    [
      "it left, and no outcome of its eviction is recorded",
      (story) => {
        story
          .play({ pressure: pressure("web") })
          .left(2_000)
          .step(50, "POST eviction: accepted");
      },
      "Selected at 2026-03-01T12:00:00.000Z (round 1); no outcome of its eviction is recorded; last: POST eviction: accepted. Requested by pressure: memory 94.1 > threshold 90. Pod deleted at 2026-03-01T12:00:02.000Z.",
    ],
    [
      "no outcome of its eviction is recorded, nor that it left, and the state no longer has the eviction",
      (story) => {
        story.play({ pressure: pressure("web") });
        story.explanation.inProgress = false;
      },
      "Selected at 2026-03-01T12:00:00.000Z (round 1); no outcome of its eviction is recorded. Requested by pressure: memory 94.1 > threshold 90.",
    ],
    [
      "it left while records are missing",
      (story) => {
        story.play({ pressure: pressure("web") }).left(2_000);
        const gap = { from: START + 1_000, to: START + 3_000, why: "the disk was full" };
        story.explanation.coverage = { oldest: START, gaps: [gap] };
      },
      "Selected at 2026-03-01T12:00:00.000Z (round 1); no outcome of its eviction is recorded: records are missing between 2026-03-01T12:00:01.000Z and 2026-03-01T12:00:03.000Z: the disk was full. Requested by pressure: memory 94.1 > threshold 90. Pod deleted at 2026-03-01T12:00:02.000Z.",
    ],
    [
      "it left before the oldest record that is kept",
      (story) => {
        story.left(2_000, "EvictionByEvictionAPI");
        story.explanation.coverage = { oldest: START + 60_000, gaps: [] };
      },
      "Pod deleted at 2026-03-01T12:00:02.000Z; whether by Nodekeeper is not known: the records of that time are no longer kept (oldest: 2026-03-01T12:01:00.000Z). Evicted through the Eviction API: why.",
    ],
    [
      "no request is recorded, and earlier records are no longer kept",
      (story) => {
        story.left(5_000);
        story.explanation.history!.leftAt = null;
        story.explanation.coverage = { oldest: START - 5_000, requests: START + 1_000, gaps: [] };
      },
      "Not evicted: no plugin requested it, as far as records are kept (oldest: 2026-03-01T12:00:01.000Z).",
    ],
    [
      "it has finished while records were missing, so that its containers may have been stopped",
      (story) => {
        finish(story);
        const why = "the machine went down";
        story.explanation.coverage = {
          oldest: START - 5_000,
          gaps: [{ from: START + 1_000, to: START + 90_000, why }],
        };
      },
      "Whether Nodekeeper evicted it is not known: records are missing between 2026-03-01T12:00:01.000Z and 2026-03-01T12:01:30.000Z: the machine went down. Container app exited with code 137.",
    ],
    [
      "it was requested last, and records of an earlier time are missing",
      (story) => {
        story.left(5_000);
        story.explanation.history!.leftAt = null;
        story.rounds.policy.burst = 0;
        story.play({ force: { pods: [evictPod("web", { force: true })] } });
        const gap = { from: START + 1_000, to: START + 2_000, why: "the machine went down" };
        story.explanation.coverage = { oldest: START - 5_000, gaps: [gap] };
      },
      "Not evicted, as far as records are kept (missing between 2026-03-01T12:00:01.000Z and 2026-03-01T12:00:02.000Z: the machine went down): force requested it, but burst limit of this round reached: the pod is queued.",
    ],
    [
      "it was requested last, its end is not recorded, and later records are missing",
      (story) => {
        story.rounds.policy.burst = 0;
        story.play({ force: { pods: [evictPod("web", { force: true })] } });
        const gap = { from: START + 1_000, to: START + 2_000, why: "a queue overflowed" };
        story.explanation.coverage = { oldest: START - 5_000, gaps: [gap] };
      },
      "Not evicted, as far as records are kept (missing between 2026-03-01T12:00:01.000Z and 2026-03-01T12:00:02.000Z: a queue overflowed): force requested it, but burst limit of this round reached: the pod is queued.",
    ],
    [
      "it had finished before records were missing",
      (story) => {
        finish(story);
        const why = "the machine went down";
        story.explanation.coverage = {
          oldest: START - 5_000,
          requests: START - 5_000,
          gaps: [{ from: START + 3_500, to: START + 90_000, why }],
        };
      },
      "Not evicted: no plugin requested it, as far as records are kept (missing between 2026-03-01T12:00:03.500Z and 2026-03-01T12:01:30.000Z: the machine went down). Container app exited with code 137.",
    ],
    [
      "no request is in exported records, which do not have requests without effect",
      (story) => {
        finish(story);
        story.explanation.coverage = { oldest: START - 5_000, gaps: [] };
      },
      "Not evicted: no plugin requested it, as far as records are kept. Container app exited with code 137.",
    ],
  ])("states in one sentence that %s", (_name, play, expected) => {
    expect(verdictAfter(play)).toBe(expected);
  });
});
