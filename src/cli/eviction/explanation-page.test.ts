import { describe, expect, it } from "vitest";
import { decide } from "../../eviction/decide.ts";
import { addToExplanation, emptyExplanation } from "../../eviction/explain.ts";
import type { EvictionPod, PodExplanation } from "../../eviction/index.ts";
import { evictPod, type TestPlugin, TestRounds, testPod } from "../../eviction/testing/rounds.ts";
import type { Output } from "../output.ts";
import { explanationPage } from "./explanation-page.ts";
import { verdictOf } from "./verdict.ts";

const plain: Output = { write() {}, isTerminal: false, columns: 120 };
const START = Date.parse("2026-03-01T12:00:00Z");

/** Rounds five seconds apart, and what they mean for one pod. */
class Story {
  readonly rounds: TestRounds;
  readonly explanation: PodExplanation;
  #id = 0;

  constructor(about: EvictionPod, ...others: EvictionPod[]) {
    this.rounds = new TestRounds([about, ...others]);
    this.rounds.now = START;
    this.explanation = emptyExplanation(about);
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

  page(): string {
    return explanationPage(this.explanation, plain);
  }
}

const pressure = (...top: string[]): TestPlugin => ({
  threshold: { metType: "hard", observedValue: 94.1, thresholdValue: 90 },
  top,
});

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
    story.rounds.outcomes = [{ uid: "web", result: "gone", message: "gone from the API server" }];
    story.play({});
    story
      .step(120, "POST eviction: accepted")
      .step(2_300, "container app died with 143")
      .step(9_900, "gone from the API server");
    story.explanation.recordsSince = START - 86_400_000;
    story.explanation.otherUids = ["older-1", "older-2"];
    expect(story.page()).toBe(`\
Pod default/web  (web)
shared_cores, Burstable, priority 100, grace period 30 s, of ReplicaSet web-6d4

Evicted at 2026-03-01T12:00:00.000Z (round 1), gone 9.9 s later: pressure asked for it: memory is 94.1, above the threshold of 90

What was done
  2026-03-01T12:00:00.120Z  +0.1 s  POST eviction: accepted
  2026-03-01T12:00:02.300Z  +2.3 s  container app died with 143
  2026-03-01T12:00:09.900Z  +9.9 s  gone from the API server

Round 1 at 2026-03-01T12:00:00.000Z
  met        pressure (hard): memory observed 94.1 > threshold 90, for 0s; named 1 pod
  failed     thresholdMet of slow: no answer within 10 s
  asked      by pressure (forced): memory is 94.1, above the threshold of 90
  chosen     as number 1 of the round, grace period its own, 30 s
  because    pressure was asked for the one pod that has to go, and named it
  rank       2 of 3 candidates, 1 is the least important; those asked for:
  RANK   POD           LEVEL          CLASS        PRIORITY   OUTCOME   WHY
> 2      default/web   shared_cores   Burstable    100        victim    goes as number 1, for pressure: memory is 94.1, above the threshold of 90
  3      default/db    shared_cores   Guaranteed   200        victim    goes as number 2, for rss: 3.1 Gi of 2 Gi
  and 1 more candidate

Round 2 at 2026-03-01T12:00:05.000Z
  met        pressure (hard): memory observed 94.1 > threshold 90, for 5s; named 1 pod
  refused    to pressure: its eviction is under way already
  rank       2 of 3 candidates, 1 is the least important

Round 3 at 2026-03-01T12:00:10.000Z
  ended      gone: gone from the API server

Older pods of this name are recorded, explained by their UIDs: older-1, older-2
Records go back to 2026-02-28T12:00:00.000Z.
`);
  });

  it("that a less important one was preferred to", () => {
    const story = new Story(testPod("db", { priority: 10 }), testPod("web"));
    story.play({ soft: { pods: [evictPod("db"), evictPod("web")] } });
    expect(story.page()).toBe(`\
Pod default/db  (db)
shared_cores, BestEffort, priority 10, grace period 30 s

Not evicted: soft asked for it, but one soft victim goes each round, and another pod is less important (default/web is less important: priority 10 over 0)

Round 1 at 2026-03-01T12:00:00.000Z
  refused    to soft: one soft victim goes each round, and another pod is less important (default/web is less important: priority 10 over 0)
  rank       2 of 2 candidates, 1 is the least important; those asked for:
  RANK   POD           LEVEL          CLASS        PRIORITY   OUTCOME   WHY
  1      default/web   shared_cores   BestEffort   0          victim    goes as number 1, for soft: it is told to
> 2      default/db    shared_cores   BestEffort   10         refused   default/web is less important: priority 10 over 0
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

Not evicted: greedy asked for it, but pods with a critical priority are not evicted (priority 2000001000)

Round 1 at 2026-03-01T12:00:00.000Z, and the same 2 times more until 2026-03-01T12:00:10.000Z
  refused    to greedy: it is no candidate
  candidate  no: pods with a critical priority are not evicted (priority 2000001000)
`);
  });

  it("that would have gone but for dry run", () => {
    const story = new Story(testPod("web"));
    story.rounds.policy.dryRunPlugins = ["pressure"];
    story.play({ pressure: pressure("web") });
    expect(story.page()).toBe(`\
Pod default/web  (web)
shared_cores, BestEffort, priority 0, grace period 30 s

Not evicted: pressure asked for it: memory is 94.1, above the threshold of 90; the plugin is in dry run

Round 1 at 2026-03-01T12:00:00.000Z
  met        pressure (hard): memory observed 94.1 > threshold 90, for 0s; named 1 pod; dry run
  asked      by pressure (forced): memory is 94.1, above the threshold of 90
  dry run    but for it, number 1 of the round, grace period its own, 30 s
  because    pressure was asked for the one pod that has to go, and named it
  rank       1 of 1 candidate, 1 is the least important
`);
  });

  it.each<[string, (story: Story) => void, string]>([
    [
      "a budget forbade it",
      (story) => {
        story.play({ pressure: pressure("web") });
        story.rounds.outcomes = [
          { uid: "web", result: "failed", message: "the disruption budget default/web allows no disruption" },
        ];
        story.play({ pressure: pressure("web") });
      },
      "Chosen at 2026-03-01T12:00:00.000Z (round 1) but not evicted: the disruption budget default/web allows no disruption. pressure asked for it: memory is 94.1, above the threshold of 90",
    ],
    [
      "the pressure was over in time",
      (story) => {
        story.play({ pressure: pressure("web") });
        story.rounds.outcomes = [
          { uid: "web", result: "withdrawn", message: "the threshold is no longer met" },
        ];
        story.play({});
      },
      "Chosen at 2026-03-01T12:00:00.000Z (round 1) but spared after all: the threshold is no longer met. pressure asked for it: memory is 94.1, above the threshold of 90",
    ],
    [
      "it is under way",
      (story) =>
        story.play({ pressure: pressure("web") }).step(50, "POST eviction: 429, tried again in 10 s"),
      "Its eviction began at 2026-03-01T12:00:00.000Z (round 1) and has not ended; last: POST eviction: 429, tried again in 10 s. pressure asked for it: memory is 94.1, above the threshold of 90",
    ],
    [
      "it failed, and went the second time",
      (story) => {
        story.play({ pressure: pressure("web") });
        story.rounds.outcomes = [{ uid: "web", result: "failed", message: "throttled" }];
        story.play({});
        story.rounds.pass(3_600);
        story.play({ force: { pods: [evictPod("web", { force: true, reason: "too old" })] } });
        story.rounds.outcomes = [{ uid: "web", result: "gone", message: "gone" }];
        story.play({});
      },
      "Evicted at 2026-03-01T13:00:10.000Z (round 3): force asked for it: too old",
    ],
    [
      "it waits for a place in the burst",
      (story) => {
        story.rounds.policy.burst = 0;
        story.play({ force: { pods: [evictPod("web", { force: true })] } });
      },
      "Not evicted: force asked for it, but the round's burst is used up: the pod waits",
    ],
    [
      "a threshold was met but nobody named it",
      (story) => story.play({ pressure: pressure("db") }),
      "Not evicted: no plugin asked for it, though a threshold was met",
    ],
    ["nothing is recorded", () => {}, "Not evicted: no recorded round was about it"],
  ])("says in one sentence that %s", (_name, tell, expected) => {
    const story = new Story(testPod("web"), testPod("db", { priority: 5 }));
    tell(story);
    expect(verdictOf(story.explanation).text).toBe(expected);
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
