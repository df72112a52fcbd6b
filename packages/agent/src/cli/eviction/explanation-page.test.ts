import { describe, expect, it } from "vitest";
import { evictPod, testPod } from "../../eviction/testing/rounds.ts";
import { finish, pressure, START, Story } from "../testing/pod-story.ts";

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
      slow: { threshold: "no response within 10 s" },
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
  failed     ThresholdMet of slow: no response within 10 s
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

  it("that others deleted after its containers had exited, it is not known why, and before it was evicted again", () => {
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
      /Selected at \S+ \(round 1\); whether Nodekeeper evicted it is not known: its containers have exited\. /,
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
