import { randomBytes } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { decide, type RankKeyName } from "@nodekeeper/api/decide";
import type { RoundRecord } from "@nodekeeper/api/records";
import { replay } from "@nodekeeper/api/replay";
import { FakeClock, type Logger, silentLogger } from "@nodekeeper/core/lib";
import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { EvictionStore, HistoryStore, StateDatabase } from "../../state/index.ts";
import { evictPod, type TestPlugin, TestRounds, testPod, testPolicy } from "../testing/rounds.ts";
import { RecordQueries } from "./record-queries.ts";
import { EvictionRecords } from "./records.ts";

const { signal } = new AbortController();
let directory: string;
let database: StateDatabase;
let store: EvictionStore;
let records: EvictionRecords;
let clock: FakeClock;
let bounds: { maxAge: number; maxSize: number };
const errors: unknown[] = [];

beforeEach(() => {
  errors.length = 0;
  directory = mkdtempSync(join(tmpdir(), "nke-"));
  bounds = { maxAge: 3_600_000, maxSize: 64 * 1024 * 1024 };
  open();
});
afterEach(() => {
  database.close();
  rmSync(directory, { recursive: true });
});

function open(started = new FakeClock()): void {
  clock = started;
  const log = { ...silentLogger, error: (fields: unknown) => void errors.push(fields) } as Logger;
  database = StateDatabase.open({ directory, clock, log });
  store = new EvictionStore(database);
  records = new EvictionRecords({ store, settings: () => bounds, clock, log });
}

/** Plays a round at the clock's time and writes it down. */
function play(rounds: TestRounds, plugins: Record<string, TestPlugin>): RoundRecord {
  rounds.now = clock.now();
  const input = structuredClone(rounds.input(plugins));
  // As the watch gives them: a pod that did not change is the same object.
  input.pods = rounds.pods;
  const record = { id: records.nextId, input, decision: decide(input) };
  rounds.state = record.decision.state;
  records.save(record, []);
  return record;
}

const forcing = (...names: string[]) => ({
  forcing: { pods: names.map((name) => evictPod(name, { force: true })) },
});
const manyPods = (count: number) =>
  Array.from({ length: count }, (_, at) =>
    testPod(`pod-${at}`, { labels: { noise: randomBytes(50).toString("hex") } }),
  );

describe("records", () => {
  it("find a pod by how its eviction ended, also where it was deleted while no agent ran and is in no list", () => {
    const rounds = new TestRounds([testPod("b")]);
    rounds.outcomes = [
      { uid: "a", namespace: "default", name: "a", result: "terminated", sent: true, message: "no such pod" },
    ];
    play(rounds, {});
    expect(records.findPods("a")).toEqual([{ uid: "a", namespace: "default", name: "a" }]);
    expect(records.findPods("default/a")).toHaveLength(1);
  });

  it("give back each round as it was", () => {
    const plugin = fc.record(
      {
        pods: fc.array(
          fc.record({
            pod: fc.constantFrom("a", "b", "c", "x").map((uid) => ({ uid, namespace: "", name: "" })),
            reason: fc.string(),
            force: fc.boolean(),
            gracePeriodSeconds: fc.constantFrom(null, 0, 10),
          }),
        ),
        threshold: fc.record({ metType: fc.constantFrom("none", "soft", "hard") }),
        top: fc.constantFrom(["a"], ["b", "c"], "failed"),
      },
      { requiredKeys: [] },
    ) as fc.Arbitrary<TestPlugin>;
    const pod = (name: string) =>
      fc
        .record({
          priority: fc.constantFrom(0, 5, 2_000_000_000),
          isMirror: fc.boolean(),
          qosClass: fc.constantFrom("BestEffort", "Guaranteed"),
        })
        .map((changes) => testPod(name, changes as never));
    const pods = fc.tuple(pod("a"), pod("b"), pod("c"), pod("d"));
    const round = fc.tuple(pods, fc.dictionary(fc.constantFrom("p", "q"), plugin), fc.boolean());
    const ranking = fc.shuffledSubarray<RankKeyName>(["qosLevel", "qosClass", "priority", "scope"], {
      minLength: 1,
    });
    fc.assert(
      fc.property(ranking, fc.array(round, { minLength: 1, maxLength: 4 }), (keys, all) => {
        const rounds = new TestRounds([], { dryRunPlugins: ["q"], ranking: keys });
        const from = records.nextId - 1;
        const played: RoundRecord[] = [];
        for (const [changed, plugins, isSame] of all) {
          if (!isSame || rounds.pods.length === 0) rounds.pods = changed;
          else rounds.pods = [changed[0], ...rounds.pods.slice(1)];
          const before = records.nextId;
          const record = play(rounds, plugins);
          if (records.nextId > before) played.push(record);
        }
        const read = [...records.rounds({ after: from })];
        const sorted = (list: RoundRecord[]) =>
          list.map(({ input, ...rest }) => ({
            ...rest,
            input: { ...input, pods: [...input.pods].sort((a, b) => (a.uid < b.uid ? -1 : 1)) },
          }));
        expect(sorted(read)).toEqual(sorted(played));
        expect(replay(read, rounds.policy).differing).toEqual([]);
      }),
      { numRuns: 100 },
    );
  });

  it("share the pods that do not change", () => {
    const rounds = new TestRounds(manyPods(1_000));
    play(rounds, forcing("pod-1"));
    const first = store.recordBytes();
    for (let count = 0; count < 20; count++) {
      clock.jump(5_000);
      rounds.change(`pod-${count}`, { priority: count });
      play(rounds, forcing(`pod-${count + 2}`));
    }
    expect(first).toBeGreaterThan(50_000);
    expect((store.recordBytes() - first) / 20).toBeLessThan(8_000);
    expect([...records.rounds()]).toHaveLength(21);
  });

  it("stay within their size, and keep the newest", () => {
    bounds.maxSize = 100_000;
    const rounds = new TestRounds(manyPods(50));
    for (let count = 0; count < 200; count++) {
      rounds.pods = manyPods(50);
      play(rounds, forcing("pod-1"));
    }
    expect(store.recordBytes()).toBeLessThanOrEqual(100_000);
    const ids = [...records.rounds()].map(({ id }) => id);
    expect(ids.length).toBeGreaterThan(2);
    expect(ids.at(-1)).toBe(200);
    // What was counted on the way is what is there.
    const counted = store.recordBytes();
    expect(new EvictionStore(database).recordBytes()).toBe(counted);
  });

  it("keep the round at hand even where it alone is too large", () => {
    bounds.maxSize = 10;
    play(new TestRounds(manyPods(10)), forcing("pod-1"));
    expect([...records.rounds()]).toHaveLength(1);
  });

  it("are forgotten with age, with all that belongs to them; their ids are not used again", async () => {
    const rounds = new TestRounds(manyPods(5));
    play(rounds, forcing("pod-1"));
    records.save(quiet(rounds), [{ uid: "pod-1", at: clock.now(), message: "POST eviction: 201" }]);
    expect(records.steps("pod-1")).toHaveLength(1);
    await clock.step(bounds.maxAge + 1_000);
    play(rounds, forcing("pod-2"));
    await clock.step(bounds.maxAge + 1_000);
    play(rounds, forcing("pod-3"));
    expect([...records.rounds()].map(({ id }) => id)).toEqual([3]);
    expect(records.steps("pod-1")).toEqual([]);
    const left = database.connection.prepare("SELECT count(*) AS n FROM eviction_base").get();
    expect(left?.n).toBe(1);
    database.connection.exec("DELETE FROM eviction_round");
    database.close();
    open();
    expect(records.nextId).toBe(4);
  });

  it("age by the monotonic clock: a wall clock that is years ahead for a while trims nothing, also across a restart", async () => {
    const rounds = new TestRounds(manyPods(5));
    play(rounds, forcing("pod-1"));
    const years = 10 * 365 * 24 * 3_600_000;
    clock.jump(years);
    play(rounds, forcing("pod-2"));
    const at = clock.now();
    database.close();
    open(new FakeClock(at));
    play(rounds, forcing("pod-3"));
    clock.jump(-years);
    play(rounds, forcing("pod-4"));
    expect([...records.rounds()].map(({ id }) => id)).toEqual([1, 2, 3, 4]);
    await clock.step(bounds.maxAge + 1);
    play(rounds, forcing("pod-1"));
    expect([...records.rounds()].map(({ id }) => id)).toEqual([5]);
    expect(records.coverage().oldest).toBeGreaterThan(clock.now() - 1_000);
  });

  it("with an effect stay when rounds without one fill the size, and those of one plugin when another has many", () => {
    bounds.maxSize = 200_000;
    const pods = manyPods(50);
    const kept = (id: number) => [...records.rounds()].some((one) => one.id === id);
    const unknown = (plugin: string) => ({
      [plugin]: {
        pods: Array.from({ length: 200 }, () => evictPod(randomBytes(8).toString("hex"), { force: true })),
      },
    });
    // A victim, a refused hard request, and a request for no pod of the node, each of its plugin.
    play(new TestRounds(pods), forcing("pod-1"));
    play(new TestRounds([testPod("dns", { priority: 2_000_001_000 })]), {
      strict: { pods: [evictPod("dns", { force: true })] },
    });
    play(new TestRounds(pods), unknown("rare"));
    const before = records.coverage();
    for (let count = 0; count < 100; count++) play(new TestRounds(pods), unknown("flood"));
    expect([kept(1), kept(2), kept(3), kept(4)]).toEqual([true, true, true, false]);
    expect(records.coverage().oldest).toBe(before.oldest);
    expect(records.coverage().requests).toBe(clock.now());
    // Another plugin's victims take more than half: its own go.
    for (let count = 0; count < 200; count++) {
      const rounds = new TestRounds(manyPods(50));
      play(rounds, { busy: { pods: [evictPod(`pod-${count % 50}`, { force: true })] } });
    }
    expect([kept(1), kept(104)]).toEqual([true, false]);
    expect(store.recordBytes()).toBeLessThanOrEqual(bounds.maxSize);
  });

  it.each([
    ["a round", "UPDATE eviction_round SET body = x'00' WHERE id = 2"],
    ["the pods of a round", "UPDATE eviction_base SET body = x'00' WHERE id = 2"],
  ])("of which %s can't be read are logged, and the rest is read", (_, damage) => {
    const rounds = new TestRounds([]);
    for (let count = 0; count < 3; count++) {
      rounds.pods = manyPods(5);
      play(rounds, forcing("pod-1"));
    }
    database.connection.exec(damage);
    expect([...records.rounds()].map(({ id }) => id)).toEqual([1, 3]);
    expect(errors).toMatchObject([{ round: 2, err: { code: "corrupt" } }]);
  });

  it.each(["{", '{"pending":7}', '{"recent":[7]}', "[]", "null"])(
    "begin from nothing where the state is %s",
    (text) => {
      store.save({ state: text, steps: [] }, { maxAgeMs: 1e12, maxBytes: 1e9 });
      expect(records.loadState() ?? { pending: [] }).toMatchObject({ pending: [] });
    },
  );

  it("bound the steps of one pod", () => {
    const rounds = new TestRounds(manyPods(2));
    play(rounds, forcing("pod-1"));
    const steps = Array.from({ length: 1_000 }, (_, step) => ({
      uid: "pod-1",
      at: clock.now(),
      message: `step ${step}`,
    }));
    records.save(quiet(rounds), steps);
    expect(records.steps("pod-1")).toHaveLength(200);
    expect(records.steps("pod-1").at(-1)?.message).toBe("step 999");
  });
});

function quiet(rounds: TestRounds): RoundRecord {
  const input = rounds.input({});
  return { id: records.nextId, input, decision: decide(input) };
}

describe("queries", () => {
  it("explain a pod: what was met, who ranked where, why this one, and what followed", async () => {
    const rounds = new TestRounds([testPod("low"), testPod("high", { priority: 100 })]);
    const plugins = {
      memory: { threshold: { metType: "hard" as const, observedValue: 0.97 }, top: ["low"] },
    };
    play(rounds, plugins);
    const at = clock.now();
    records.save(quiet(rounds), [{ uid: "low", at, message: "POST eviction: 201" }]);
    const page = await new RecordQueries(records, new HistoryStore(database)).explainPod(
      "default/low",
      signal,
    );
    expect(page).toMatchObject({
      uid: "low",
      rounds: [
        {
          thresholds: [{ plugin: "memory", observedValue: 0.97, confirmed: true, named: 1 }],
          victim: { plugin: "memory", reason: expect.stringContaining("0.97") },
          place: { rank: 1, outcome: "victim" },
          candidates: 2,
        },
      ],
      steps: [{ at, message: "POST eviction: 201" }],
    });
    expect((await new RecordQueries(records, new HistoryStore(database)).explainPod("low", signal)).uid).toBe(
      "low",
    );
    await expect(
      new RecordQueries(records, new HistoryStore(database)).explainPod("default/absent", signal),
    ).rejects.toThrow(/default\/absent on this node; the records go back to 20/);
  });

  it("explain that an eviction is in progress only while the state has it", async () => {
    const rounds = new TestRounds([testPod("a")]);
    play(rounds, forcing("a"));
    const isInProgress = async () =>
      (await new RecordQueries(records, new HistoryStore(database)).explainPod("a", signal)).inProgress;
    expect(await isInProgress()).toBe(true);
    records.saveState({ ...rounds.state, pending: [] }, []);
    expect(await isInProgress()).toBe(false);
    const outcome = { uid: "a", result: "terminated" as const, message: "pod deleted" };
    records.saveState({ ...rounds.state, pending: [], unrecorded: [outcome] }, []);
    expect(await isInProgress()).toBe(false);
    records.saveState({ ...rounds.state, pending: [], unrecorded: [{ ...outcome, result: "overdue" }] }, []);
    expect(await isInProgress()).toBe(true);
  });

  it("find the outcomes that are not recorded yet by reading each of the last rounds at most once", () => {
    const uids = Array.from({ length: 40 }, (_, at) => `p${at}`);
    const rounds = new TestRounds([testPod("a")]);
    const outcomeOf = (uid: string, number: number) => ({
      ...{ uid, namespace: "default", name: uid, result: "terminated" as const },
      message: `pod deleted, ${number}`,
    });
    for (let number = 1; number <= 70; number++) {
      rounds.outcomes = uids.map((uid) => outcomeOf(uid, number));
      play(rounds, {});
    }
    // Of rounds that waited for space, those between may have been dropped.
    const unrecorded = uids.map((uid, at) => outcomeOf(uid, at < 10 ? 71 : 70 - at));
    records.saveState({ ...rounds.state, unrecorded }, []);
    const read = vi.spyOn(store, "round");
    expect(records.loadState()?.unrecorded.map(({ uid }) => uid)).toEqual(uids.slice(0, 10));
    expect(read.mock.calls.length).toBeLessThanOrEqual(65);
  });

  it("explain why a pod stays, once for many rounds of the same", async () => {
    const rounds = new TestRounds([testPod("a"), testPod("critical", { priority: 2_000_000_001 })]);
    for (let count = 0; count < 10; count++) play(rounds, forcing("critical"));
    const queries = new RecordQueries(records, new HistoryStore(database));
    const { rounds: explained } = await queries.explainPod("default/critical", signal);
    expect(explained).toHaveLength(1);
    expect(explained[0]).toMatchObject({
      times: 10,
      exclusion: { reason: "critical" },
      refusals: [{ plugin: "forcing", reason: "critical" }],
    });
  });

  it("keep a page short where a pod's outcome changes all the time, and keep what had consequences", async () => {
    const rounds = new TestRounds([testPod("a"), testPod("b", { priority: 1 })]);
    const soft = (...names: string[]) => ({ soft: { pods: names.map((name) => evictPod(name)) } });
    play(rounds, soft("b"));
    rounds.outcomes = [{ uid: "b", result: "failed", message: "the budget allows none" }];
    rounds.policy.dryRunPlugins = ["soft"];
    for (let count = 0; count < 70; count++) {
      clock.jump(5_000);
      const metType = count % 2 === 0 ? "none" : "hard";
      play(rounds, { ...soft("b"), flapping: { threshold: { metType } } });
      rounds.outcomes = [];
    }
    const page = await new RecordQueries(records, new HistoryStore(database)).explainPod("b", signal);
    expect(page.rounds).toHaveLength(50);
    expect(page.omitted).toBe(71 - 50);
    expect(page.rounds[0]).toMatchObject({ id: 1, victim: { name: "b" } });
    expect(page.rounds[1]).toMatchObject({ id: 2, outcome: { result: "failed" } });
    expect(page.rounds.at(-1)).toMatchObject({ id: 71 });
  });

  it("show the eviction of a pod that more than 1,000 later rounds concern", async () => {
    const rounds = new TestRounds([testPod("a"), testPod("b", { priority: 1 })]);
    const soft = { soft: { pods: [evictPod("b")] } };
    play(rounds, soft);
    rounds.outcomes = [
      { uid: "b", result: "terminated", sent: true, stopsContainers: true, message: "stopped app" },
    ];
    rounds.policy.dryRunPlugins = ["soft"];
    for (let count = 0; count < 1_010; count++) {
      clock.jump(1_000);
      play(rounds, soft);
      rounds.outcomes = [];
    }
    const page = await new RecordQueries(records, new HistoryStore(database)).explainPod("b", signal);
    expect(page.rounds.map(({ id, times }) => [id, times])).toEqual([
      [1, 1],
      [2, 1],
      [12, 1_000],
    ]);
    expect(page.omitted).toBe(9);
  });

  it("of an exported file are all in it, also those that equal the one before", () => {
    const rounds = new TestRounds([testPod("a")]);
    const met = { p: { threshold: { metType: "hard" as const }, top: [] } };
    const exported: RoundRecord[] = [];
    for (let count = 0; count < 3; count++) {
      exported.push(play(rounds, met));
      // Nothing is recorded of these.
      for (let quiet = 0; quiet < 3; quiet++) play(rounds, {});
    }
    const [last] = [...records.lastRounds(1)];
    database.close();
    rmSync(directory, { recursive: true });
    open();
    for (const record of exported) records.import(record);
    expect(last).toMatchObject({ id: exported.at(-1)!.id });
    expect([...records.lastRounds(10)].map(({ id }) => id)).toEqual(exported.map(({ id }) => id).reverse());
  });

  it("find the newest pod of a name, and name the others", async () => {
    play(new TestRounds([testPod("web-1-old", { name: "web-1" })]), {
      forcing: {
        pods: [
          evictPod("web-1", { pod: { uid: "web-1-old", namespace: "default", name: "web-1" }, force: true }),
        ],
      },
    });
    play(new TestRounds([testPod("web-1-new", { name: "web-1" })]), {
      forcing: {
        pods: [
          evictPod("web-1", { pod: { uid: "web-1-new", namespace: "default", name: "web-1" }, force: true }),
        ],
      },
    });
    const queries = new RecordQueries(records, new HistoryStore(database));
    expect(await queries.explainPod("default/web-1", signal)).toMatchObject({
      uid: "web-1-new",
      otherUids: ["web-1-old"],
    });
    expect(await queries.explainPod("web-1-old", signal)).toMatchObject({ uid: "web-1-old", otherUids: [] });
  });

  it("continue with what is left where rounds are written and trimmed meanwhile", async () => {
    const rounds = new TestRounds(manyPods(30));
    for (let count = 0; count < 10; count++) play(rounds, forcing(`pod-${count}`));
    const read: number[] = [];
    for await (const { id } of new RecordQueries(records, new HistoryStore(database)).records(0, 0, signal)) {
      read.push(id);
      if (id !== 4) continue;
      await clock.step(2 * bounds.maxAge);
      play(rounds, forcing("pod-20"));
    }
    expect(read).toEqual([1, 2, 3, 4, 11]);
  });

  it("stop explaining when the client has disconnected", async () => {
    const rounds = new TestRounds([testPod("critical", { priority: 2_000_000_001 })]);
    for (let count = 0; count < 20; count++) play(rounds, forcing("critical"));
    const stop = AbortSignal.abort(new Error("client disconnected"));
    await expect(
      new RecordQueries(records, new HistoryStore(database)).explainPod("critical", stop),
    ).rejects.toThrow();
  });

  it("show what another policy would have decided", async () => {
    const rounds = new TestRounds([testPod("a"), testPod("b", { namespace: "other" })]);
    play(rounds, { soft: { pods: [evictPod("a")] } });
    const queries = new RecordQueries(records, new HistoryStore(database));
    const policy = testPolicy({ dryRunPlugins: ["soft"] });
    const recorded: RoundRecord[] = [];
    for await (const record of queries.records(0, 0, signal)) recorded.push(record);
    const { differing, ...rest } = replay(recorded, policy);
    expect(rest).toEqual({
      ...{ rounds: 1, uncertain: 0, victimsBefore: 1, victimsAfter: 0 },
      ...{ dryRunBefore: 0, dryRunAfter: 1 },
    });
    expect(differing).toMatchObject([
      { id: 1, notEvicted: [{ name: "a", why: "the plugin is in dry run" }], refusals: { dryRun: [0, 1] } },
    ]);
    expect(replay(recorded, testPolicy()).differing).toEqual([]);
  });

  it("list rounds after a time and an id", async () => {
    const rounds = new TestRounds(manyPods(30));
    for (let count = 0; count < 25; count++) {
      play(rounds, forcing(`pod-${count}`));
      clock.jump(5_000);
    }
    const queries = new RecordQueries(records, new HistoryStore(database));
    const all = await queries.rounds(0, 0, signal);
    expect(all.map(({ id }) => id)).toEqual(Array.from({ length: 25 }, (_, at) => at + 1));
    expect(all[3]).toMatchObject({ victims: [{ name: "pod-3" }], candidates: 30 });
    expect((await queries.rounds(all[20]!.at, 22, signal)).map(({ id }) => id)).toEqual([23, 24, 25]);
  });
});
