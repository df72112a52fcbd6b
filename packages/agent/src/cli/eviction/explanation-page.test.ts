import { decide, type EvictionPod } from "@nodekeeper/api/decide";
import { addToExplanation, emptyExplanation, type PodExplanation } from "@nodekeeper/api/records";
import { verdictOf } from "@nodekeeper/api/wording";
import { describe, expect, it } from "vitest";
import { evictPod, type TestPlugin, TestRounds, testPod } from "../../eviction/testing/rounds.ts";
import type { Output } from "../output.ts";
import { explanationPage } from "./explanation-page.ts";

const plain: Output = { write() {}, isTerminal: false, columns: 120 };
const START = Date.parse("2026-03-01T12:00:00.000Z");

/** Rounds five seconds apart, explained for one pod. */
class Story {
  readonly rounds: TestRounds;
  readonly explanation: PodExplanation;
  #id = 0;

  constructor(about: EvictionPod, ...others: EvictionPod[]) {
    this.rounds = new TestRounds([about, ...others]);
    this.rounds.now = START;
    this.explanation = { ...emptyExplanation(about), coverage: { oldest: START, gaps: [] } };
  }

  play(plugins: Record<string, TestPlugin>): this {
    const input = structuredClone(this.rounds.input(plugins));
    const decision = decide(input);
    this.#id++;
    addToExplanation(this.explanation, { id: this.#id, input, decision });
    this.rounds.state = decision.state;
    this.rounds.outcomes = [];
    this.rounds.pass(5);
    return this;
  }

  step(ms: number, message: string): this {
    this.explanation.steps.push({ uid: this.explanation.uid, at: START + ms, message });
    return this;
  }

  /** The pod was deleted after a time. */
  left(ms: number, disruption: string | undefined = undefined): this {
    const { uid, namespace, name } = this.explanation;
    const { labels: _labels, annotationKeys: _keys, ...pod } = testPod(name);
    const target = disruption === undefined ? null : { reason: disruption, message: "why", at: START };
    const ending = { deletion: null, disruption: target, phase: "Running", reason: "", message: "" };
    const times = { seenAt: START, leftAt: START + ms, lastKnownAt: null };
    this.explanation.history = { uid, namespace, name, ...times, pod, ending, exits: [] };
    return this;
  }

  page(): string {
    return explanationPage(this.explanation, plain);
  }
}

const pressure = (...top: string[]): TestPlugin => ({
  threshold: { metType: "hard", observedValue: 94.1, thresholdValue: 90 },
  top,
});

/** A pod whose containers were stopped by its eviction, after the next round. */
function stopped(): Story {
  const story = new Story(testPod("web"), testPod("db"));
  story.play({ pressure: pressure("web") });
  const times = { acceptedAt: START + 120, endedAt: START + 1_100 };
  const stop = { sent: true, stopsContainers: true, message: "stopped app" };
  story.rounds.outcomes = [{ uid: "web", result: "terminated", ...stop, ...times }];
  story.play({ pressure: pressure("web") });
  return story;
}

/** Lets the pod fail after two seconds, without being deleted. */
function finish(story: Story): void {
  story.left(5_000);
  const { history } = story.explanation;
  const exits = [{ id: "1", name: "app", exitCode: 137, reason: "Error", at: START + 2_000 }];
  const ending = { ...history!.ending, deletion: null, disruption: null, phase: "Failed" };
  Object.assign(history!, { leftAt: null, lastKnownAt: null, exits, ending });
}

describe("the page about a pod", () => {
  it("that was evicted: why, what was done, and beside whom", () => {
    const owner = { kind: "ReplicaSet", name: "web-6d4", uid: "rs" };
    const story = new Story(
      testPod("web", { qosClass: "Burstable", priority: 100, owner }),
      testPod("db", { qosClass: "Guaranteed", priority: 200 }),
      testPod("idle"),
    );
    story.play({
      pressure: pressure("web"),
      rss: { pods: [evictPod("db", { reason: "3.1 Gi of 2 Gi", gracePeriodSeconds: 90 })] },
      slow: { threshold: "no answer within 10 s" },
    });
    story.play({ pressure: pressure("web") });
    story.rounds.remove("web");
    const times = { acceptedAt: START + 120, endedAt: START + 9_900 };
    story.rounds.outcomes = [{ uid: "web", result: "terminated", ...times, message: "pod deleted" }];
    story.play({});
    story
      .step(120, "POST eviction: accepted")
      .step(2_300, "container app exited with code 143")
      .step(9_900, "pod deleted");
    story.explanation.coverage = { oldest: START - 86_400_000, gaps: [] };
    story.explanation.otherUids = ["older-1", "older-2"];
    expect(story.page()).toBe(`\
Pod default/web  (web)
shared_cores, Burstable, priority 100, grace period 30 s, of ReplicaSet web-6d4

Evicted at 2026-03-01T12:00:00.120Z (round 1), pod deleted after 9.8 s: requested by pressure: memory 94.1 > threshold 90.

What happened
  2026-03-01T12:00:00.120Z  +0.1 s  POST eviction: accepted
  2026-03-01T12:00:02.300Z  +2.3 s  container app exited with code 143
  2026-03-01T12:00:09.900Z  +9.9 s  pod deleted

Round 1 at 2026-03-01T12:00:00.000Z
  met        pressure (hard): memory 94.1 > threshold 90, for 0s; named 1 pod
  failed     ThresholdMet of slow: no answer within 10 s
  requested  by pressure (forced): memory 94.1 > threshold 90
  selected   first in this round. Grace period: 30 s (from the pod spec)
  because    Hard threshold: pressure selected this pod. Its choice overrides the ranking (2 of 3).
  rank       2 of 3 candidates, 1 is evicted first; requested pods:
  RANK   POD           LEVEL          CLASS        PRIORITY   OUTCOME    WHY
> 2      default/web   shared_cores   Burstable    100        selected   evicted at the request of pressure: memory 94.1 > threshold 90
  3      default/db    shared_cores   Guaranteed   200        selected   evicted at the request of rss: 3.1 Gi of 2 Gi
  and 1 more candidate

Round 2 at 2026-03-01T12:00:05.000Z
  met        pressure (hard): memory 94.1 > threshold 90, for 5s; on hold: the eviction of an earlier victim of the same threshold has not ended
  rank       2 of 3 candidates, 1 is evicted first; can't be evicted now: its eviction is already in progress

Round 3 at 2026-03-01T12:00:10.000Z
  ended      evicted: pod deleted

Other recorded pods of this name (explain them by UID): older-1, older-2
Records go back to 2026-02-28T12:00:00.000Z.
`);
  });

  it("whose containers were stopped, and that others deleted after they had been restarted", () => {
    const story = stopped();
    expect(story.page()).not.toContain("terminating");
    story.step(1_100, "stopped app").left(60_000);
    const exit = { id: "2", name: "app", exitCode: 137, reason: "Error", at: START + 60_000 };
    story.explanation.history!.exits = [exit];
    const [, verdict, happened] = story.page().split("\n\n");
    expect(verdict).toBe(
      "Evicted at 2026-03-01T12:00:00.120Z (round 1), stopped app after 1.0 s: requested by pressure: memory 94.1 > threshold 90. " +
        "Pod deleted at 2026-03-01T12:01:00.000Z, not by Nodekeeper. Container app exited with code 137.",
    );
    expect(happened).toContain("+60.0 s  pod deleted");
  });

  it("whose containers were stopped, and that was selected again before it was seen to have finished", () => {
    const story = stopped();
    story.rounds.pass(60);
    story.play({ rss: { pods: [evictPod("web", { force: true })] } });
    const message = "pod finished (Failed) before its eviction was sent";
    story.rounds.outcomes = [{ uid: "web", result: "superseded", sent: false, message }];
    story.play({});
    finish(story);
    const [, verdict] = story.page().split("\n\n");
    expect(verdict).toMatch(
      /^Evicted at 2026-03-01T12:00:00.120Z \(round 1\), stopped app after 1.0 s: requested by pressure: /,
    );
    expect(verdict).not.toContain("not evicted by Nodekeeper");
  });

  it("whose containers may have been stopped and restarted while no agent ran: it is not stated to be unharmed", () => {
    const story = new Story(testPod("web"), testPod("db"));
    story.play({ pressure: pressure("web") });
    const message = "containers were not stopped, or were restarted: app";
    const outcome = { uid: "web", result: "failed", sent: true, stopsContainers: true, message } as const;
    story.rounds.outcomes = [outcome];
    story.play({ pressure: pressure("db") });
    expect(story.page()).toContain(
      `Selected at 2026-03-01T12:00:00.000Z (round 1); whether Nodekeeper evicted it is not known: ${message}. `,
    );
  });

  it("that others deleted, after its containers had exited and it is not known why", () => {
    const story = new Story(testPod("web"), testPod("db"));
    story.play({ pressure: pressure("web") });
    const exited = { sent: true, stopsContainers: true, message: "its containers have exited" };
    story.rounds.outcomes = [{ uid: "web", result: "unknown", ...exited }];
    story.rounds.pass(60);
    story.play({}).play({ rss: { pods: [evictPod("web", { force: true })] } });
    const message = "pod deleted before its eviction was sent";
    story.rounds.outcomes = [{ uid: "web", result: "superseded", sent: false, message }];
    story.play({}).left(90_000);
    expect(story.page()).toMatch(
      /Selected at \S+ \(round 3\) but not evicted by Nodekeeper: pod deleted before/,
    );
  });

  it("ranked higher than a requested one", () => {
    const story = new Story(testPod("db", { priority: 10 }), testPod("web"));
    story.play({ soft: { pods: [evictPod("db"), evictPod("web")] } });
    expect(story.page()).toBe(`\
Pod default/db  (db)
shared_cores, BestEffort, priority 10, grace period 30 s

Not evicted: soft requested it, but ranked higher than default/web: priority 10 over 0; at most one soft eviction per round.

Round 1 at 2026-03-01T12:00:00.000Z
  refused    to soft: ranked higher than default/web: priority 10 over 0; at most one soft eviction per round
  rank       2 of 2 candidates, 1 is evicted first; requested pods:
  RANK   POD           LEVEL          CLASS        PRIORITY   OUTCOME       WHY
  1      default/web   shared_cores   BestEffort   0          selected      evicted at the request of soft: memory is low
> 2      default/db    shared_cores   BestEffort   10         not evicted   ranked higher than default/web: priority 10 over 0; at most one soft eviction per round

Records go back to 2026-03-01T12:00:00.000Z.
`);
  });

  it("that is critical, asked for again and again", () => {
    const story = new Story(
      testPod("dns", { priority: 2_000_001_000, priorityClassName: "system-node-critical" }),
    );
    for (let round = 0; round < 3; round++) {
      story.play({ greedy: { pods: [evictPod("dns", { force: true })] } });
    }
    expect(story.page()).toBe(`\
Pod default/dns  (dns)
shared_cores, BestEffort, priority 2000001000 (system-node-critical), grace period 30 s

Not evicted: greedy requested it, but pods with a critical priority are not evicted (priority 2000001000).

Round 1 at 2026-03-01T12:00:00.000Z, and the same 2 times more until 2026-03-01T12:00:10.000Z
  refused    to greedy: the pod is not a candidate
  candidate  no: pods with a critical priority are not evicted (priority 2000001000)

Records go back to 2026-03-01T12:00:00.000Z.
`);
  });

  it("that a plugin in dry run requested", () => {
    const story = new Story(testPod("web"));
    story.rounds.policy.dryRunPlugins = ["pressure"];
    story.play({ pressure: pressure("web") });
    expect(story.page()).toBe(`\
Pod default/web  (web)
shared_cores, BestEffort, priority 0, grace period 30 s

Not evicted: requested by pressure: memory 94.1 > threshold 90; the plugin is in dry run.

Round 1 at 2026-03-01T12:00:00.000Z
  met        pressure (hard): memory 94.1 > threshold 90, for 0s; named 1 pod; dry run
  requested  by pressure (forced): memory 94.1 > threshold 90
  dry run    would have been selected first in this round. Grace period: 30 s (from the pod spec)
  because    Hard threshold: pressure selected this pod.
  rank       1 of 1 candidate, 1 is evicted first

Records go back to 2026-03-01T12:00:00.000Z.
`);
  });

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
      "it had finished before records were missing",
      (story) => {
        finish(story);
        const why = "the machine went down";
        story.explanation.coverage = {
          oldest: START - 5_000,
          gaps: [{ from: START + 3_500, to: START + 90_000, why }],
        };
      },
      "Not evicted: no plugin requested it. Container app exited with code 137.",
    ],
  ])("states in one sentence that %s", (_name, play, expected) => {
    const story = new Story(testPod("web"), testPod("db", { priority: 5 }));
    play(story);
    expect(verdictOf(story.explanation).text).toBe(expected);
  });

  it.each([
    ["EvictionByEvictionAPI", false],
    ["PreemptionByScheduler", true],
  ])("that Nodekeeper evicted does not name another client (%s)", (reason, isShown) => {
    const story = new Story(testPod("web"));
    story.play({ pressure: pressure("web") });
    story.rounds.outcomes = [{ uid: "web", result: "terminated", sent: true, message: "pod deleted" }];
    story.play({}).left(2_000, reason);
    expect(story.page()).not.toMatch(/another client|not by Nodekeeper/);
    expect(story.page().includes("Preempted by the scheduler: why")).toBe(isShown);
  });

  it("does nothing to the terminal, whatever plugins and pods are called", () => {
    const nasty = "\u001b[2J\u009b31m\u202e\u2066\r\n\u0000";
    const story = new Story(
      testPod("web", { name: `web${nasty}`, owner: { kind: nasty, name: nasty, uid: nasty } }),
    );
    const pod = { uid: "web", namespace: "default", name: `web${nasty}` };
    story.play({
      [`evil${nasty}`]: {
        pods: [{ ...evictPod("web"), pod, force: true, reason: `${nasty}Round 7` }],
        threshold: { metType: "hard", scope: nasty },
        top: nasty,
      },
    });
    story.step(0, `answered ${nasty}`);
    story.explanation.otherUids = [nasty];
    const text = story.page();
    // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what must not come out
    expect(text.replaceAll("\n", "")).not.toMatch(/[\u0000-\u001f\u007f-\u009f\u202e\u2066]/);
    expect(text).not.toMatch(/^Round 7/m);
  });

  it("stays a page with names and reasons of any length", () => {
    const story = new Story(testPod("web", { name: "n".repeat(5_000) }));
    const pod = { uid: "web", namespace: "default", name: "n".repeat(5_000) };
    story.play({
      ["p".repeat(5_000)]: { pods: [{ ...evictPod("web"), pod, reason: "r".repeat(50_000), force: true }] },
    });
    for (const line of story.page().split("\n")) expect(line.length).toBeLessThan(700);
  });
});
