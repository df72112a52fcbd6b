import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { FakeClock, silentLogger } from "@nodekeeper/core/lib";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { ArchiveStore } from "./archive-store.ts";
import { ClaimStore, type StoredClaim } from "./claim-store.ts";
import { StateDatabase } from "./database.ts";
import { EvictionStore } from "./eviction-store.ts";
import { HistoryStore, type StoredNodePod } from "./history-store.ts";
import { Marks } from "./marks.ts";

let directory: string;
let clock: FakeClock;
let database: StateDatabase;
let store: ArchiveStore;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "nka-"));
  clock = new FakeClock();
  open();
});
afterEach(() => {
  database.close();
  rmSync(directory, { recursive: true });
});

function open(): void {
  database = StateDatabase.open({ directory, clock, log: silentLogger });
  store = new ArchiveStore(database, clock, "node-a");
}

const queued = () => store.next(0, 1_000);
const kinds = () => queued().map(({ kind, key }) => `${kind} ${key}`);
const bodies = () => queued().map(({ body }) => body && JSON.parse(body));

const bounds = { maxAgeMs: 1e12, maxBytes: 1e9 };
const historyBounds = { maxAgeMs: 1e12, mostLeft: 1_000 };
const pod = { uid: "u1", namespace: "default", name: "web" };

function saveRound(id: number, consequence: "none" | "refusal" | "effect"): void {
  const round = { id, at: clock.now(), base: new Uint8Array([1]), body: new Uint8Array([2]) };
  new EvictionStore(database).save(
    { state: "{}", round: { ...round, pods: [pod], consequence, plugins: ["p"] }, steps: [] },
    bounds,
  );
}

function savePod(changes: Partial<StoredNodePod>): void {
  const stored = { ...pod, seenAt: 1, leftAt: null, record: "{}", ...changes };
  new HistoryStore(database).save({ pods: [stored], events: [], watchedAt: 1, cursor: null }, historyBounds);
}

function saveStep(message: string): void {
  const step = { uid: "u1", at: clock.now(), message };
  new EvictionStore(database).save({ state: "{}", steps: [step] }, bounds);
}

function saveClaim(changes: Partial<StoredClaim>): void {
  const claims = new ClaimStore(database);
  const claim: StoredClaim = {
    ...{ driver: "gpu.example.com", uid: "c1", namespace: "default", name: "claim", state: "prepared" },
    ...{ boot: "b", configuration: "[]", cdi: "", details: "null", updatedAt: clock.now() },
    devices: JSON.stringify([{ pool: "node-a", device: "gpu-0" }]),
    pods: JSON.stringify([{ uid: "u1", name: "web" }]),
    ...changes,
  };
  claims.together(() => claims.save(claim));
}

describe("the queue of the archive", () => {
  it("has what was decided, in the order in which it was written", () => {
    store.start();
    saveRound(1, "none");
    saveRound(2, "refusal");
    saveStep("POST eviction: accepted");
    savePod({});
    savePod({ leftAt: 5 });
    saveRound(3, "effect");
    expect(kinds()).toEqual(["round 2", "step u1", "pod u1", "round 3"]);
    expect(bodies()[1]).toEqual({ uid: "u1", at: clock.now(), message: "POST eviction: accepted" });
    expect(new Set(queued().map(({ record }) => record)).size).toBe(4);
    for (const { record } of queued()) expect(record).toMatch(/^[0-9a-f]{32}$/);
  });

  it("has nothing while the archive is not configured", () => {
    saveRound(1, "effect");
    savePod({ leftAt: 5 });
    expect(queued()).toEqual([]);
  });

  it("has a claim of the time before with the time at which it was prepared", () => {
    saveClaim({ updatedAt: 1_000 });
    store.start();
    expect(queued()).toMatchObject([{ kind: "claim", at: 1_000 }, { kind: "coverage" }]);
    expect(bodies()[0]).toMatchObject({ state: "prepared", updatedAt: 1_000 });
  });

  it("replaces a damaged gap, which would hold up what comes after it for good", () => {
    store.start();
    saveStep("POST eviction: accepted");
    database.connection.exec("UPDATE archive_queue SET kind = 'gap', body = NULL");
    const { id, at } = queued()[0]!;
    store.lose(id, id, "it can't be read");
    expect(bodies()).toMatchObject([{ from: at, to: at, records: 0 }]);
  });

  it("has a gap for the time of which the pods are kept, and the decisions are not", () => {
    const at = clock.now();
    savePod({ leftAt: at - 60_000 });
    const coverage = { since: at - 1_000, requests: at, marks: at, gaps: [] };
    new EvictionStore(database).coverage.replace(coverage);
    store.start();
    expect(kinds()).toEqual(["pod u1", "coverage "]);
    expect(bodies()[1]).toMatchObject({ from: at - 60_000, to: at - 1_001 });
    expect(queued()[1]!.record).toMatch(/^[0-9a-f]{32}$/);
    database.close();
    open();
    store.start();
    expect(kinds()).toEqual(["pod u1", "coverage "]);
  });

  it("starts with what is kept of the time before, each record once over restarts", async () => {
    new Marks(database, clock, silentLogger).addStart("1");
    saveRound(1, "effect");
    saveStep("POST eviction: accepted");
    savePod({ leftAt: clock.now() });
    saveClaim({});
    store.start();
    const first = queued();
    expect(first.map(({ kind }) => kind).sort()).toEqual(["claim", "mark", "pod", "round", "step"]);
    database.close();
    open();
    store.start();
    expect(queued()).toEqual(first);
    store.remove(first[1]!.id);
    database.close();
    open();
    // Without an exporter.
    await clock.step(1_000);
    saveRound(2, "effect");
    savePod({ uid: "u2", leftAt: clock.now() + 1 });
    store.start();
    expect(kinds().slice(3)).toEqual(["round 2", "pod u2"]);
    expect(queued().slice(0, 3)).toEqual(first.slice(2));
  });

  it("has the same IDs if it was lost, and others on another node", () => {
    new Marks(database, clock, silentLogger).addStart("1");
    saveRound(1, "effect");
    saveStep("POST eviction: accepted");
    saveStep("POST eviction: accepted");
    savePod({ leftAt: clock.now() });
    saveClaim({});
    database.coverage.addGap({ from: 1, to: 5, why: "disk full" });
    database.coverage.complete();
    store.start();
    const idsOf = () => queued().map(({ record }) => record);
    const ids = idsOf();
    expect(new Set(ids).size).toBe(7);
    const startAgain = (nodeName: string) => {
      database.connection.exec("DELETE FROM archive_queue; DELETE FROM archive_source");
      database.close();
      open();
      new ArchiveStore(database, clock, nodeName).start();
    };
    startAgain("node-a");
    expect(idsOf()).toEqual(ids);
    startAgain("node-b");
    expect(new Set([...idsOf(), ...ids]).size).toBe(14);
  });

  it("has a pod again if it is learned later how its containers exited", () => {
    store.start();
    savePod({ leftAt: 5 });
    savePod({ leftAt: 5 });
    savePod({ leftAt: 5, record: '{"exits":[]}' });
    expect(kinds()).toEqual(["pod u1", "pod u1"]);
  });

  it("has a claim when it is prepared, when its pods change, and when it is unprepared", () => {
    store.start();
    saveClaim({ state: "preparing" });
    saveClaim({});
    saveClaim({ cdi: "changed" });
    saveClaim({ pods: "[]" });
    const claims = new ClaimStore(database);
    claims.together(() => claims.remove("gpu.example.com", "c1"));
    saveClaim({ state: "preparing", uid: "c2" });
    claims.together(() => claims.remove("gpu.example.com", "c2"));
    const common = { driver: "gpu.example.com", uid: "c1", namespace: "default", name: "claim" };
    const rest = { updatedAt: clock.now(), devices: ["node-a/gpu-0"] };
    expect(bodies()).toEqual([
      { ...common, ...rest, state: "prepared", pods: [{ uid: "u1", namespace: "default", name: "web" }] },
      { ...common, ...rest, state: "prepared", pods: [] },
      { ...common, ...rest, state: "unprepared", pods: [] },
    ]);
  });

  it("has starts of the agent and gaps in the records, each once", () => {
    store.start();
    const marks = new Marks(database, clock, silentLogger);
    marks.addStart("1");
    marks.add([{ kind: "pluginLost", title: "lost" }]);
    database.coverage.addGap({ from: 1, to: 5, why: "disk full" });
    database.coverage.complete();
    database.coverage.addGap({ from: 7, to: 9, why: "killed" });
    database.coverage.complete();
    expect(kinds().map((kind) => kind.split(" ")[0])).toEqual(["mark", "coverage", "coverage"]);
    expect(bodies()[0]).toMatchObject({ kind: "agentStarted", title: "agent 1 started" });
    expect(bodies().slice(1)).toEqual([
      { from: 1, to: 5, why: "disk full" },
      { from: 7, to: 9, why: "killed" },
    ]);
  });

  it("loses a record only with the transaction that writes it", () => {
    store.start();
    expect(() =>
      database.transaction(() => {
        database.insert("eviction_step", { uid: "u1", at: 1, message: "sent" });
        throw new Error("disk full");
      }),
    ).toThrow("disk full");
    saveStep("accepted");
    expect(queued()).toHaveLength(1);
    expect(queued()[0]!.id).toBe(1);
  });

  it("replaces its oldest records by one gap above its bounds, which later ones continue", async () => {
    store.start();
    for (let at = 1; at <= 20; at++) {
      await clock.step(1);
      saveStep(`step ${at}`);
    }
    const whole = { records: 20, bytes: 1e9 };
    expect(store.trim(whole, "why")).toBe(0);
    expect(store.trim({ records: 10, bytes: 1e9 }, "why")).toBe(11);
    const start = clock.now() - 20;
    expect(bodies()[0]).toEqual({ from: start + 1, to: start + 11, why: "why", records: 11 });
    const gap = queued()[0]!.record;
    expect(store.trim({ records: 5, bytes: 1e9 }, "why")).toBe(5);
    expect(bodies()[0]).toEqual({ from: start + 1, to: start + 16, why: "why", records: 16 });
    expect(queued()[0]!.record).not.toBe(gap);
    expect(queued()).toHaveLength(5);
    expect(store.trim({ records: 1_000, bytes: 100 }, "why")).toBeGreaterThan(0);
    expect(queued()[0]!.kind).toBe("gap");
    expect(store.queuedRecords()).toBe(queued().length);
    expect(store.oldestAt()).toBe(queued()[0]!.at);
  });

  it("has a trace with the removal of its records, and bounds traces", () => {
    store.start();
    saveStep("one");
    const fails = () => store.remove(1, [new Uint8Array([1]), null as unknown as Uint8Array]);
    expect(fails).toThrow("NOT NULL");
    expect([store.queuedRecords(), store.queuedTraces()]).toEqual([1, 0]);
    store.remove(
      1,
      Array.from({ length: 20 }, (_, at) => new Uint8Array([at])),
    );
    expect([store.queuedRecords(), store.queuedTraces()]).toEqual([0, 20]);
    expect(store.trimTraces({ records: 20, bytes: 20 })).toBe(0);
    expect(store.trimTraces({ records: 10, bytes: 20 })).toBe(11);
    expect(store.traces(0, 1)).toEqual([{ id: 12, spans: new Uint8Array([11]) }]);
    store.removeTraces(12);
    expect(store.traces(0, 1)[0]!.id).toBe(13);
  });
});
