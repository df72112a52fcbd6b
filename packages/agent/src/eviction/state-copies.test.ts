import { mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { verdictOf } from "@nodekeeper/api/wording";
import { FakeClock } from "@nodekeeper/core/lib";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { BootDirectory } from "../state/boot-directory.ts";
import { HistoryStore, StateDatabase } from "../state/index.ts";
import { RecordQueries } from "./records/record-queries.ts";
import { forcing, sourceOf, TestAgent } from "./testing/manager-setup.ts";
import { FakePods } from "./testing/round-parts.ts";
import { evictPod } from "./testing/rounds.ts";

let root: string;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "nke-"));
});
afterEach(() => {
  vi.restoreAllMocks();
  rmSync(root, { recursive: true });
});

const terminated = { uid: "b", result: "terminated", message: "pod deleted" } as const;

/** An agent whose state has a copy for the boot. */
function start(pods: FakePods, ...names: string[]): TestAgent {
  return new TestAgent(join(root, "state"), pods, [forcing(...names)], new FakeClock(), join(root, "run"));
}

/** Kills the agent between its next two writes of state, whichever comes first, or after more of them. */
function killBetweenCopies(agent: TestAgent, most = 1): void {
  let writes = 0;
  const transaction = StateDatabase.prototype.transaction;
  const write = BootDirectory.prototype.write;
  const die = () => {
    agent.kill();
    throw new Error("killed");
  };
  vi.spyOn(StateDatabase.prototype, "transaction").mockImplementation(function (
    this: StateDatabase,
    ...args
  ) {
    return ++writes > most ? die() : transaction.apply(this, args);
  });
  vi.spyOn(BootDirectory.prototype, "write").mockImplementation(function (this: BootDirectory, ...args) {
    return ++writes > most ? die() : write.apply(this, args);
  });
}

function failWrites({ database }: TestAgent) {
  return vi.spyOn(database, "transaction").mockImplementation(() => {
    throw new Error("database or disk is full");
  });
}

/** The recorded outcomes. */
function recorded({ records }: TestAgent): string[] {
  return [...records.rounds()].flatMap(({ input }) =>
    input.outcomes.map(({ uid, result }) => `${uid} ${result}`),
  );
}

/** Evicts a pod, which then ends. No round has recorded that yet. */
async function evict(agent: TestAgent, pods: FakePods): Promise<void> {
  await agent.round();
  const at = agent.clock.monotonic();
  agent.evictor.accept({ uid: "b", at, deadline: at + 60_000 });
  agent.evictor.outcomes.push(terminated);
  pods.pods.delete("b");
}

describe("an agent that is killed", () => {
  it("between the two copies of its state has recorded the outcomes of its last round, or follows their evictions", async () => {
    const pods = new FakePods("a", "b");
    {
      using agent = start(pods, "b");
      await evict(agent, pods);
      killBetweenCopies(agent);
      await agent.round().catch(() => {});
    }
    vi.restoreAllMocks();
    using next = start(pods);
    await next.round();
    if (next.evictor.resumed.length > 0) next.evictor.outcomes.push(terminated);
    await next.round();
    expect(recorded(next)).toEqual(["b terminated"]);
    expect(next.manager.state).toMatchObject({ pending: [], recent: [{ uid: "b" }] });
  });

  it("while the disk is full, has kept the state of the last round", async () => {
    const pods = new FakePods("a", "b", "c", "d");
    {
      using agent = start(pods, "a", "b", "c");
      failWrites(agent);
      await evict(agent, pods);
      await agent.round();
      const at = agent.clock.monotonic();
      agent.evictor.advance({ uid: "c", stage: "sending", at, deadline: null });
    }
    using next = start(pods);
    const { stored } = next.ledger.restore();
    expect(stored?.pending).toMatchObject([
      { uid: "a", sendingAt: null },
      { uid: "c", sendingAt: expect.any(Number) },
    ]);
  });

  it("while the disk is full, has kept the outcomes of rounds that waited for space", async () => {
    const pods = new FakePods("a", "b");
    {
      using agent = start(pods, "b");
      await evict(agent, pods);
      failWrites(agent);
      await agent.round();
      await agent.round();
      const at = agent.clock.monotonic();
      agent.evictor.advance({ uid: "a", stage: "sending", at, deadline: null });
    }
    using next = start(pods);
    await next.round();
    await next.round();
    expect(recorded(next)).toEqual(["b terminated"]);
    expect(next.manager.state).toMatchObject({ pending: [], recent: [{ uid: "b" }] });
  });

  it("while it writes rounds that waited for space, keeps the state of the last round", async () => {
    const pods = new FakePods("a", "b", "c", "d");
    {
      using agent = start(pods, "a", "b", "c");
      const full = failWrites(agent);
      await evict(agent, pods);
      await agent.round();
      expect(agent.ledger.recordError).toMatch(/full/);
      full.mockRestore();
      killBetweenCopies(agent);
      await agent.round().catch(() => {});
    }
    vi.restoreAllMocks();
    using next = start(pods);
    const { stored } = next.ledger.restore();
    expect(stored?.pending.map(({ uid }) => uid)).not.toContain("b");
    expect(stored?.recent.map(({ uid }) => uid)).toContain("b");
  });

  it("while the disk is full, follows a pod that was selected again after its eviction was withdrawn", async () => {
    const pods = new FakePods("a", "b");
    {
      using agent = start(pods, "b");
      failWrites(agent);
      await agent.round();
      agent.evictor.outcomes.push({ ...terminated, result: "withdrawn" });
      await agent.round();
      await agent.round();
      const at = agent.clock.monotonic();
      agent.evictor.accept({ uid: "b", at, deadline: at + 60_000 });
    }
    using next = start(pods);
    expect(next.ledger.restore().accepted.map(({ uid }) => uid)).toEqual(["b"]);
  });

  it("while the disk is full, has kept the last outcome of a pod that was selected twice", async () => {
    const pods = new FakePods("a", "b");
    {
      using agent = start(pods, "b");
      await agent.round();
      failWrites(agent);
      agent.evictor.outcomes.push({ ...terminated, result: "withdrawn" });
      await agent.round();
      await evict(agent, pods);
      await agent.round();
    }
    using next = start(pods);
    await next.round();
    expect(recorded(next)).toEqual(["b terminated"]);
  });

  describe("while the disk is full, after it has selected a pod that an earlier round selected too", () => {
    /** The first selection is recorded; its withdrawal and the second selection are lost. */
    async function lose(result?: "failed" | "terminated"): Promise<TestAgent> {
      const pods = new FakePods("a", "b");
      {
        using agent = start(pods, "b");
        await agent.round();
      }
      const other = sourceOf("other", {
        getEvictPods: async () => ({ pods: [evictPod("b", { force: true })], condition: null }),
      });
      {
        using agent = new TestAgent(join(root, "state"), pods, [other], clockAt(60_000), join(root, "run"));
        failWrites(agent);
        await agent.round();
        const at = agent.clock.monotonic();
        if (result === undefined) agent.evictor.accept({ uid: "b", at, deadline: at + 60_000 });
        else agent.evictor.outcomes.push({ uid: "b", result, message: "what became of it" });
        if (result === "terminated") pods.pods.delete("b");
        await agent.round();
      }
      const next = new TestAgent(join(root, "state"), pods, [forcing()], clockAt(120_000), join(root, "run"));
      await next.round();
      await next.round();
      return next;
    }
    const clockAt = (ms: number) => {
      const clock = new FakeClock();
      clock.jump(ms);
      return clock;
    };

    it("does not show the outcome of the second beside the first in explain", async () => {
      using agent = await lose("failed");
      expect(recorded(agent)).toEqual(["b failed"]);
      const queries = new RecordQueries(agent.records, new HistoryStore(agent.database));
      const { text } = verdictOf(await queries.explainPod("b", new AbortController().signal));
      expect(text).toBe("Not evicted: what became of it. The round that selected it is not recorded.");
    });

    it("does not show the first as the one in progress", async () => {
      using agent = await lose();
      expect(recorded(agent)).toEqual([]);
      const state = () => agent.manager.state;
      const inForce = { nodeName: "n", state, policy: () => agent.policy, taints: () => undefined };
      const queries = new RecordQueries(agent.records, new HistoryStore(agent.database), inForce);
      const { signal } = new AbortController();
      const { text } = verdictOf(await queries.explainPod("b", signal));
      expect(text).toBe("Its eviction has not ended. The round that selected it is not recorded.");
      const { items } = await queries.evictions(0, 0, signal);
      expect(items).toMatchObject([{ plugin: "forcing", outcome: { result: "unknown" } }]);
    });

    it("does not show it as the outcome of the first in the list of evictions", async () => {
      using agent = await lose("terminated");
      expect(recorded(agent)).toEqual(["b terminated"]);
      const queries = new RecordQueries(agent.records, new HistoryStore(agent.database));
      const { items } = await queries.evictions(0, 0, new AbortController().signal);
      expect(items).toMatchObject([
        { plugin: "forcing", outcome: { result: "unknown", message: "its outcome was not recorded" } },
      ]);
    });
  });

  it("while its database is in memory, has kept the outcomes that rounds recorded there", async () => {
    const pods = new FakePods("a", "b");
    const file = join(root, "state", "nodekeeper.db");
    {
      using agent = start(pods, "b");
      await evict(agent, pods);
    }
    renameSync(file, `${file}.elsewhere`);
    symlinkSync(join(root, "missing", "nodekeeper.db"), file);
    {
      using agent = start(pods);
      expect(agent.database.isPersistent).toBe(false);
      await agent.round();
      await agent.round();
      expect(recorded(agent)).toEqual(["b terminated"]);
    }
    rmSync(file);
    renameSync(`${file}.elsewhere`, file);
    using next = start(pods);
    await next.round();
    await next.round();
    expect(recorded(next)).toEqual(["b terminated"]);
    expect(next.manager.state).toMatchObject({ pending: [], recent: [{ uid: "b" }] });
  });

  it("while its database is in memory, leaves no failed eviction that would pause its pod again", async () => {
    const pods = new FakePods("a", "b");
    const file = join(root, "state", "nodekeeper.db");
    mkdirSync(join(root, "state"));
    symlinkSync(join(root, "missing", "nodekeeper.db"), file);
    {
      using agent = start(pods, "b");
      expect(agent.database.isPersistent).toBe(false);
      await agent.round();
      agent.evictor.outcomes.push({ uid: "b", result: "failed", message: "429", sent: true });
      await agent.round();
      await agent.round();
      expect(recorded(agent)).toEqual(["b failed"]);
    }
    rmSync(file);
    using next = start(pods);
    expect(next.records.loadState()).toMatchObject({ unrecorded: [], paused: [{ uid: "b" }] });
  });

  it.each([1, 2, 3, 4])(
    "while it writes rounds that waited for space, after %i writes, records each outcome once",
    async (writes) => {
      const pods = new FakePods("a", "b");
      {
        using agent = start(pods, "b");
        const full = failWrites(agent);
        await evict(agent, pods);
        await agent.round();
        full.mockRestore();
        killBetweenCopies(agent, writes);
        await agent.round().catch(() => {});
      }
      vi.restoreAllMocks();
      using next = start(pods);
      await next.round();
      await next.round();
      expect(recorded(next)).toEqual(["b terminated"]);
    },
  );

  it("while it writes rounds that waited for space, without a copy for the boot, records each outcome once", async () => {
    const pods = new FakePods("a", "b");
    const startWithoutCopy = (...names: string[]) =>
      new TestAgent(join(root, "state"), pods, [forcing(...names)]);
    {
      using agent = startWithoutCopy("b");
      await agent.round();
      agent.evictor.accept({ uid: "b", at: agent.clock.monotonic(), deadline: null });
      const full = failWrites(agent);
      agent.evictor.outcomes.push(terminated);
      pods.pods.delete("b");
      await agent.round();
      full.mockRestore();
      killBetweenCopies(agent);
      await agent.round().catch(() => {});
    }
    vi.restoreAllMocks();
    using next = startWithoutCopy();
    expect(recorded(next)).toEqual(["b terminated"]);
    expect(next.ledger.restore().stored).toMatchObject({ pending: [], recent: [{ uid: "b" }] });
  });
});
