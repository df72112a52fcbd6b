import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { verdictOf } from "@nodekeeper/api/wording";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { EvictionStore, HistoryStore } from "../state/index.ts";
import { observeJson } from "./observe/observed-pod.ts";
import { RecordQueries } from "./records/record-queries.ts";
import { forcing, hard, sourceOf, TestAgent } from "./testing/manager-setup.ts";
import { FakePods, jsonPod } from "./testing/round-parts.ts";
import { evictPod, namesOf, nodeCondition, testThreshold } from "./testing/rounds.ts";

let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "nke-"));
});
afterEach(() => rmSync(directory, { recursive: true }));

/** The outcomes in the records: "web terminated: pod deleted". */
function recordedOutcomes({ records }: TestAgent): string[] {
  return [...records.rounds()].flatMap(({ input }) =>
    input.outcomes.map(({ uid, result, message }) => `${uid} ${result}: ${message}`),
  );
}

describe("an agent that is stopped", () => {
  it("writes down the last steps of evictions", async () => {
    const pods = new FakePods("a");
    const agent = new TestAgent(directory, pods, [forcing("a")]);
    await agent.round();
    agent.evictor.steps.push({ uid: "a", at: agent.clock.now(), message: "POST eviction: 201" });
    await agent.stop();
    using next = new TestAgent(directory, pods);
    expect(next.records.steps("a")).toMatchObject([{ message: "POST eviction: 201" }]);
  });
});

describe("an outcome that is known when the agent stops", () => {
  it("is recorded by the first round of the next agent, once, and the eviction is not followed", async () => {
    const pods = new FakePods("a", "b");
    const failed = { uid: "a", result: "failed", message: "429: budget" } as const;
    const terminated = { uid: "b", result: "terminated", message: "pod deleted" } as const;
    const agent = new TestAgent(directory, pods, [forcing("a", "b")]);
    await agent.round();
    agent.evictor.accept({ uid: "b", at: agent.clock.monotonic(), deadline: agent.clock.monotonic() + 9 });
    agent.evictor.outcomes.push(failed, terminated);
    await agent.stop();
    pods.pods.delete("b");
    using next = new TestAgent(directory, pods, [forcing()]);
    await next.round();
    await next.round();
    expect(next.evictor.resumed).toEqual([]);
    expect(recordedOutcomes(next)).toEqual(["a failed: 429: budget", "b terminated: pod deleted"]);
    expect(next.manager.state).toMatchObject({ pending: [], interrupted: [], paused: [{ uid: "a" }] });
  });
});

describe("an outcome that is known when the agent stops, equal to that of the pod's eviction before", () => {
  it("is recorded by the first round of the next agent too", async () => {
    const pods = new FakePods("a");
    const withdrawn = { uid: "a", result: "withdrawn", message: "not needed" } as const;
    const agent = new TestAgent(directory, pods, [forcing("a")]);
    await agent.round();
    agent.evictor.outcomes.push(withdrawn);
    await agent.round();
    expect(namesOf(agent.evictor.started)).toEqual(["a", "a"]);
    agent.evictor.outcomes.push(withdrawn);
    await agent.stop();
    using next = new TestAgent(directory, pods, [forcing()]);
    await next.round();
    expect(recordedOutcomes(next)).toEqual(["a withdrawn: not needed", "a withdrawn: not needed"]);
  });
});

describe("an agent that starts with the state of another", () => {
  it("has decided no round until it decides one", async () => {
    const pods = new FakePods("a");
    const agent = new TestAgent(directory, pods, [forcing()]);
    expect(agent.manager.lastRoundAt).toBeNull();
    await agent.round();
    expect(agent.manager.lastRoundAt).toBe(agent.manager.state.at);
    await agent.stop();
    using next = new TestAgent(directory, pods, [forcing()]);
    pods.isSynced = false;
    await next.round();
    expect(next.manager.state.at).not.toBeNull();
    expect(next.manager.lastRoundAt).toBeNull();
    pods.isSynced = true;
    await next.round();
    expect(next.manager.lastRoundAt).toBe(next.manager.state.at);
  });
});

describe("an agent that is killed", () => {
  it("after an eviction was found overdue, before a round recorded that, follows it as overdue", async () => {
    const pods = new FakePods("a", "b");
    const overdue = { uid: "a", result: "overdue", message: "still terminating" } as const;
    {
      using agent = new TestAgent(directory, pods, [forcing("a", "b")]);
      await agent.round();
      const now = agent.clock.monotonic();
      agent.evictor.accept({ uid: "a", at: now, deadline: now + 9 });
      agent.evictor.outcomes.push(overdue);
      agent.evictor.accept({ uid: "b", at: now, deadline: now + 9 });
    }
    using next = new TestAgent(directory, pods, [forcing()]);
    await next.round();
    expect(next.evictor.resumed).toMatchObject([{ uid: "a", isOverdue: true }, { uid: "b" }]);
    expect(recordedOutcomes(next)).toEqual(["a overdue: still terminating"]);
  });

  it.each(["terminated", "failed"] as const)(
    "after an eviction %s, before a round recorded that, knows its end",
    async (result) => {
      const pods = new FakePods("a", "b");
      {
        using agent = new TestAgent(directory, pods, [forcing("a")]);
        await agent.round();
        const now = agent.clock.monotonic();
        agent.evictor.accept({ uid: "a", at: now, deadline: now + 9 });
        agent.evictor.outcomes.push({ uid: "a", result, message: "as it was" });
      }
      using next = new TestAgent(directory, pods, [forcing()]);
      await next.round();
      expect(next.evictor.resumed).toEqual([]);
      expect(next.evictor.ended).toMatchObject([{ uid: "a", result }]);
      expect(recordedOutcomes(next)).toEqual([`a ${result}: as it was`]);
    },
  );

  it("between decision and eviction leaves the decision to the first round of the next", async () => {
    const pods = new FakePods("a", "b", "c");
    {
      using agent = new TestAgent(directory, pods, [forcing("b")]);
      agent.evictor.onStart = () => agent.kill();
      await agent.round();
    }
    using next = new TestAgent(directory, pods, [forcing("b")]);
    await next.round();
    expect(next.evictor.resumed).toEqual([]);
    expect(namesOf(next.evictor.started)).toEqual(["b"]);
  });

  it("between decision and eviction: what no plugin asks for any more is not evicted, and that is recorded", async () => {
    const pods = new FakePods("a", "b");
    {
      using agent = new TestAgent(directory, pods, [forcing("b")]);
      await agent.round();
    }
    using next = new TestAgent(directory, pods, [forcing()]);
    await next.round();
    await next.round();
    expect(next.evictor.started).toEqual([]);
    expect(next.manager.state).toMatchObject({ pending: [], interrupted: [], recent: [] });
    expect(recordedOutcomes(next)).toEqual(["b withdrawn: it was not sent before the agent restarted"]);
  });

  it("after the API server accepted it, before that was written down, only follows the terminating pod", async () => {
    const pods = new FakePods("a", "b");
    {
      using agent = new TestAgent(directory, pods, [forcing("b")]);
      await agent.round();
    }
    pods.pods.set(
      "b",
      observeJson(jsonPod("b", { metadata: { deletionTimestamp: "2023-11-14T22:13:20Z" } })),
    );
    using next = new TestAgent(directory, pods, [forcing("b")]);
    await next.round();
    expect(next.evictor.started).toEqual([]);
    expect(namesOf(next.evictor.resumed)).toEqual(["b"]);
    expect(next.manager.state.pending).toMatchObject([
      { name: "b", sendingAt: null, acceptedAt: null, deadline: next.clock.now() + 60_000 },
    ]);
    expect(next.manager.state.recent).toMatchObject([{ uid: "b", releasedAt: null }]);
  });

  it("after it was accepted, before its end was written down, follows it and starts it no second time", async () => {
    const pods = new FakePods("a", "b");
    {
      using agent = new TestAgent(directory, pods, [forcing("b")]);
      await agent.round();
      const at = agent.clock.monotonic();
      agent.evictor.accept({ uid: "b", at, deadline: at + 60_000 });
    }
    using next = new TestAgent(directory, pods, [forcing("b")]);
    await next.round();
    expect(next.evictor.resumed).toMatchObject([{ name: "b", deadline: next.clock.now() + 60_000 }]);
    next.evictor.outcomes.push({ uid: "b", result: "terminated", message: "pod deleted" });
    pods.pods.delete("b");
    await next.round();
    expect(next.evictor.started).toEqual([]);
    expect(next.manager.state.pending).toEqual([]);
  });

  it("for days: what it had sent is past its deadline, and nothing of it is evicted", async () => {
    const pods = new FakePods("a", "b");
    const days = 3 * 86_400_000;
    {
      using agent = new TestAgent(directory, pods, [forcing("b")]);
      agent.bootTime = { id: "one", uptimeMs: 1_000_000 };
      await agent.round();
      agent.evictor.accept({ uid: "b", at: 0, deadline: 60_000 });
    }
    using next = new TestAgent(directory, pods, [forcing()]);
    next.clock.jump(days);
    next.bootTime = { id: "one", uptimeMs: 1_000_000 + days };
    await next.round();
    expect(next.evictor.started).toEqual([]);
    expect(next.evictor.resumed).toMatchObject([{ name: "b", deadline: next.clock.now() - days + 60_000 }]);
    // It leaves the state by its outcome only, and puts nothing on hold.
    expect(next.manager.state).toMatchObject({ pending: [{ name: "b" }], recent: [] });
    next.evictor.outcomes.push({ uid: "b", result: "terminated", message: "pod deleted" });
    await next.round();
    expect(next.manager.state.pending).toEqual([]);
  });

  it.each([
    [
      "before a request was sent",
      false,
      "b superseded: pod was deleted while the agent was not running, before its eviction was sent",
    ],
    [
      "after a request was sent",
      true,
      "b unknown: pod was deleted while the agent was not running; a request may have been sent before the agent restarted, and no response is recorded",
    ],
  ])(
    "%s, and its pod is deleted meanwhile: the first round records what is known",
    async (_name, isSent, outcome) => {
      const pods = new FakePods("a", "b");
      {
        using agent = new TestAgent(directory, pods, [forcing("b")]);
        await agent.round();
        const at = agent.clock.monotonic();
        if (isSent) agent.evictor.advance({ uid: "b", stage: "sending", at, deadline: null });
      }
      pods.pods.delete("b");
      using next = new TestAgent(directory, pods, [forcing()]);
      await next.round();
      await next.round();
      expect(recordedOutcomes(next)).toEqual([outcome]);
      expect(next.manager.state).toMatchObject({ pending: [], interrupted: [] });
    },
  );

  it("while its disk was full: that no request was sent is not stated, because the record of one may be missing", async () => {
    const pods = new FakePods("a", "b");
    {
      using agent = new TestAgent(directory, pods, [forcing("b")]);
      await agent.round();
      vi.spyOn(EvictionStore.prototype, "save").mockImplementation(() => {
        throw new Error("database or disk is full");
      });
      const at = agent.clock.monotonic();
      agent.evictor.advance({ uid: "b", stage: "sending", at, deadline: null });
    }
    vi.restoreAllMocks();
    pods.pods.delete("b");
    using next = new TestAgent(directory, pods, [forcing()]);
    await next.round();
    await next.round();
    expect(recordedOutcomes(next)).toEqual([
      "b unknown: pod was deleted while the agent was not running; a request may have been sent before the agent restarted, and no response is recorded",
    ]);
  });

  it("after a request was sent, and its pod is not terminating: it is decided again, with an outcome of the first", async () => {
    const pods = new FakePods("a", "b");
    {
      using agent = new TestAgent(directory, pods, [forcing("b")]);
      await agent.round();
      agent.evictor.advance({ uid: "b", stage: "sending", at: agent.clock.monotonic(), deadline: null });
    }
    using next = new TestAgent(directory, pods, [forcing("b")]);
    await next.round();
    expect(recordedOutcomes(next)).toEqual([
      "b withdrawn: no response to its request was recorded before the agent restarted",
    ]);
    // The request may still arrive: it counts for the limits beside the new one.
    expect(next.manager.state.recent).toHaveLength(2);
    expect(namesOf(next.evictor.started)).toEqual(["b"]);
    expect(next.manager.state.pending).toMatchObject([{ name: "b", sendingAt: null }]);
  });

  it("after StopContainer was sent: whether it has evicted the pod, which runs on, is not known", async () => {
    const pods = new FakePods("a", "b");
    {
      using agent = new TestAgent(directory, pods, [forcing("b")]);
      await agent.round();
      const at = agent.clock.monotonic();
      agent.evictor.advance({ uid: "b", stage: "sending", at, deadline: null, stopsContainers: true });
    }
    using next = new TestAgent(directory, pods, [forcing()]);
    await next.round();
    expect(recordedOutcomes(next)).toEqual([
      "b withdrawn: no result of StopContainer was recorded before the agent restarted",
    ]);
    const queries = new RecordQueries(next.records, new HistoryStore(next.database));
    const { text } = verdictOf(await queries.explainPod("b", new AbortController().signal));
    expect(text).toContain("whether Nodekeeper evicted it is not known: no result of StopContainer");
  });

  it.each([
    [
      "gone",
      "b unknown: pod was deleted while the agent was not running; a request of an earlier eviction may have been accepted",
    ],
    ["there", "b withdrawn: it was not sent before the agent restarted"],
  ])("after a request was sent, and again before the next one was: its pod is %s", async (what, outcome) => {
    const pods = new FakePods("a", "b");
    {
      using agent = new TestAgent(directory, pods, [forcing("b")]);
      await agent.round();
      agent.evictor.advance({ uid: "b", stage: "sending", at: agent.clock.monotonic(), deadline: null });
    }
    {
      using second = new TestAgent(directory, pods, [forcing("b")]);
      await second.round();
      expect(second.evictor.started).toMatchObject([{ name: "b", sentBefore: true }]);
    }
    if (what === "gone") pods.pods.delete("b");
    using third = new TestAgent(directory, pods, [forcing()]);
    await third.round();
    await third.round();
    expect(recordedOutcomes(third).at(-1)).toContain(outcome);
    expect(third.evictor.interrupted.at(-1)).toMatchObject({ sent: false, sentBefore: true });
  });

  // As while the API server is unavailable: the evictor can't read the pod before the agent is killed again.
  it("twice, before the end of what it had sent is known, records that end at last", async () => {
    const pods = new FakePods("a", "b");
    {
      using agent = new TestAgent(directory, pods, [forcing("b")]);
      await agent.round();
      const at = agent.clock.monotonic();
      agent.evictor.accept({ uid: "b", at, deadline: at + 60_000 });
    }
    pods.pods.delete("b");
    {
      using second = new TestAgent(directory, pods, [forcing("a")]);
      await second.round();
      expect(namesOf(second.evictor.started)).toEqual(["a"]);
    }
    using third = new TestAgent(directory, pods, [forcing()]);
    await third.round();
    expect(namesOf(third.evictor.resumed)).toEqual(["b"]);
    third.evictor.outcomes.push({ uid: "b", result: "terminated", message: "pod deleted" });
    await third.round();
    expect(recordedOutcomes(third).filter((text) => text.startsWith("b"))).toEqual([
      "b terminated: pod deleted",
    ]);
    expect(third.manager.state.pending).toEqual([]);
  });

  it("before a decision has done nothing", async () => {
    const pods = new FakePods("a");
    const dying = sourceOf("forcing", {
      getEvictPods: async () => {
        agent.kill();
        return { pods: [evictPod("a", { force: true })], condition: null };
      },
    });
    const agent = new TestAgent(directory, pods, [dying]);
    await agent.round();
    expect(agent.evictor.started).toEqual([]);
    using next = new TestAgent(directory, pods, [forcing("a")]);
    await next.round();
    expect(next.evictor.resumed).toEqual([]);
    expect(namesOf(next.evictor.started)).toEqual(["a"]);
  });
});

describe("taints", () => {
  const pressing = sourceOf("pressing", {
    thresholdMet: async () => ({ ...hard, condition: nodeCondition("MemoryPressure") }),
  });

  it("are removed after a restart only once the plugins that asked for them have answered", async () => {
    const pods = new FakePods("a");
    {
      using agent = new TestAgent(directory, pods, [pressing]);
      await agent.round();
      // Added at once, and nothing is removed yet.
      expect(agent.tainter.desired.at(-1)).toMatchObject({
        node: [{ key: "nodekeeper.dev/MemoryPressure" }],
        isComplete: false,
      });
      for (let count = 0; count < 12; count++) await agent.round();
      expect(agent.tainter.desired.at(-1)).toMatchObject({ node: [{}], isComplete: true });
    }
    let isUp = false;
    const late = sourceOf("pressing", {
      thresholdMet: async () => {
        if (!isUp) throw new Error("not yet");
        return testThreshold();
      },
    });
    using next = new TestAgent(directory, pods, [late]);
    await next.round();
    expect(next.tainter.desired.at(-1)).toMatchObject({ node: [{}], isComplete: false });
    isUp = true;
    await next.round();
    expect(next.tainter.desired.at(-1)).toMatchObject({ node: [{}], isComplete: true });
    for (let count = 0; count < 60; count++) await next.round();
    expect(next.tainter.desired.at(-1)?.node).toEqual([]);
  });
});
