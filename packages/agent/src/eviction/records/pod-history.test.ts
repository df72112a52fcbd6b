import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { FakeClock, silentLogger } from "@nodekeeper/core/lib";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { LogItem, PodLifecycleEvent } from "../../lifecycle/index.ts";
import { HistoryStore, StateDatabase } from "../../state/index.ts";
import { observeJson } from "../observe/observed-pod.ts";
import { jsonPod } from "../testing/round-parts.ts";
import { type OomKill, PodHistory, readNodePod } from "./pod-history.ts";
import { RecordQueries } from "./record-queries.ts";
import type { EvictionRecords } from "./records.ts";

let directory: string;
let database: StateDatabase;
let store: HistoryStore;
let clock: FakeClock;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "nkh-"));
  clock = new FakeClock();
  database = StateDatabase.open({ directory, clock, log: silentLogger });
  store = new HistoryStore(database);
});
afterEach(() => {
  database.close();
  rmSync(directory, { recursive: true });
});

/** One life of the history, with a lifecycle log that a test writes. */
class Life {
  readonly kills: OomKill[] = [];
  readonly history: PodHistory;
  readonly #stop = new AbortController();
  readonly #items: LogItem[] = [];
  #wake = () => {};
  readonly #running: Promise<void>;
  /** Where it was asked to continue. */
  after: unknown;

  constructor() {
    this.history = new PodHistory({
      store,
      events: {
        position: { log: "log", sequence: 0 },
        read: ({ after }, signal) => {
          this.after = after;
          return this.#read(signal);
        },
      },
      settings: () => ({ maxAge: 3_600_000 }),
      memoryUsageOf: () => 61 * 1024 * 1024,
      onOomKill: (kill) => void this.kills.push(kill),
      clock,
      log: silentLogger,
    });
    this.#running = this.history.run(this.#stop.signal);
  }

  async *#read(signal: AbortSignal): AsyncIterableIterator<LogItem> {
    signal.addEventListener("abort", () => this.#wake());
    while (!signal.aborted) {
      const item = this.#items.shift();
      if (item) yield item;
      else
        await new Promise<void>((resolve) => {
          this.#wake = resolve;
        });
    }
  }

  see(name: string, status: object = {}, metadata: object = {}): this {
    const object = jsonPod(name, { status, metadata });
    this.history.seen(object, observeJson(object).pod);
    return this;
  }

  async event(uid: string, event: Partial<PodLifecycleEvent>): Promise<void> {
    const sequence = this.#items.length + 1;
    const whole = { type: "ContainerDied", reason: "", exitCode: undefined, at: clock.now(), ...event };
    const pod = { uid, namespace: "default", name: uid };
    this.#items.push({
      kind: "event",
      position: { log: "log", sequence },
      event: { ...whole, pod, sequence } as PodLifecycleEvent,
    });
    this.#wake();
    await clock.step(300);
  }

  async stop(): Promise<void> {
    this.#stop.abort();
    await this.#running;
    expect(clock.timers).toBe(0);
  }
}

const read = (uid: string) => readNodePod(store.pod(uid)!)!;
const app = { id: "c1", name: "app", kind: "container" } as const;
const terminated = (at: number, reason: string, exitCode = 137) => ({
  containerStatuses: [
    {
      name: "app",
      lastState: {
        terminated: {
          ...{ containerID: "containerd://c1", reason, exitCode },
          finishedAt: new Date(at).toISOString(),
        },
      },
    },
  ],
});

describe("the history of a node's pods", () => {
  it("has one exit of a container that both the runtime and the API server report, and one kill", async () => {
    const life = new Life();
    life.see("web");
    await life.event("web", { container: app, exitCode: 137, reason: "OOMKilled" });
    life.see("web", terminated(clock.now(), "OOMKilled"));
    await clock.step(300);
    expect(read("web").exits).toMatchObject([{ id: "c1", name: "app", exitCode: 137, reason: "OOMKilled" }]);
    expect(life.kills).toMatchObject([{ pod: { name: "web" }, usageBytes: 61 * 1024 * 1024 }]);
    await life.stop();
  });

  it("has the last exit of each container beside the newest 20, so that its kill is reported once", async () => {
    const life = new Life();
    const killedAt = clock.now();
    for (let count = 1; count <= 40; count++) {
      await clock.step(1_000);
      const last = { reason: "Error", exitCode: 1, finishedAt: new Date(clock.now()).toISOString() };
      const sidecar = {
        name: "sidecar",
        lastState: { terminated: { ...last, containerID: `containerd://s${count}` } },
      };
      const { containerStatuses } = terminated(killedAt, "OOMKilled");
      life.see("web", { containerStatuses: [...containerStatuses, sidecar] });
    }
    await clock.step(300);
    expect(life.kills).toHaveLength(1);
    const { exits } = read("web");
    expect([exits.length, exits[0]!.name, exits.at(-1)!.id]).toEqual([20, "app", "s40"]);
    await life.stop();
  });

  it("knows no memory limit of a pod that the API server has not shown since the start", async () => {
    const first = new Life();
    first.see("web");
    await first.event("web", { container: app, exitCode: 137, reason: "OOMKilled" });
    await first.stop();
    const second = new Life();
    await second.event("web", { container: { ...app, id: "c2" }, exitCode: 137, reason: "OOMKilled" });
    expect([...first.kills, ...second.kills].map(({ limit }) => limit)).toEqual([null, undefined]);
    await second.stop();
  });

  it("knows of a deletion that may have been missed only that the pod was there when the watch last delivered something", async () => {
    const life = new Life();
    life.see("web").see("db");
    life.history.listed(new Set(["web", "db"]));
    const listedAt = clock.now();
    await clock.step(180_000);
    life.history.left("web", jsonPod("web"), true);
    life.history.left("db", jsonPod("db"), false);
    // It came and went while the watch was down.
    const creationTimestamp = new Date(listedAt + 60_000).toISOString();
    life.see("brief", {}, { creationTimestamp });
    life.history.left("brief", jsonPod("brief", { metadata: { creationTimestamp } }), true);
    await clock.step(300);
    expect(read("web")).toMatchObject({ lastKnownAt: listedAt, leftAt: listedAt + 180_000 });
    expect(read("brief")).toMatchObject({ lastKnownAt: listedAt + 60_000, leftAt: listedAt + 180_000 });
    expect(read("db").lastKnownAt).toBeNull();
    await life.stop();
  });

  it("learns of a kill from the API server where the runtime had no reason", async () => {
    const life = new Life();
    life.see("web");
    await life.event("web", { container: app, exitCode: 137 });
    expect(life.kills).toEqual([]);
    life.see("web", terminated(clock.now(), "OOMKilled"));
    expect(life.kills).toHaveLength(1);
    await life.stop();
  });

  it("reports no kill of the time before the agent was first on the node, and each later one once", async () => {
    const first = new Life();
    first.see("web", terminated(clock.now() - 60_000, "OOMKilled"));
    await first.stop();
    await clock.step(60_000);
    const second = new Life();
    second.see("web", terminated(clock.now() - 120_000, "OOMKilled"));
    expect([...first.kills, ...second.kills]).toEqual([]);
    await second.stop();
  });

  it("knows a pod whose end was missed to exist until the watch last delivered something, also after a restart", async () => {
    const first = new Life();
    first.see("a").see("b");
    first.history.listed(new Set(["a", "b"]));
    await clock.step(10_000);
    first.history.heard();
    const heardAt = clock.now();
    // The watch has been lost since, and what the runtime reports is stored.
    await clock.step(20_000);
    await first.event("b", { container: app, exitCode: 1 });
    // A list in its place has a change of another pod, and not this one.
    first.see("b", { phase: "Failed" });
    first.history.listed(new Set(["b"]));
    await first.stop();
    expect(read("a")).toMatchObject({ lastKnownAt: heardAt, leftAt: clock.now() });

    const listedAt = clock.now();
    await clock.step(20_000);
    const second = new Life();
    await clock.step(20_000);
    await second.event("b", { container: app, exitCode: 1 });
    second.history.listed(new Set());
    await second.stop();
    expect(read("b")).toMatchObject({ lastKnownAt: listedAt, leftAt: clock.now() });
  });

  it("knows a pod to exist from when it was first seen, and until no later than its end is noticed", async () => {
    const first = new Life();
    first.see("a").see("b");
    const seenAt = clock.now();
    await first.stop();
    await clock.step(20_000);
    const second = new Life();
    second.history.listed(new Set(["b"]));
    expect(read("a").leftAt).toBeNull();
    clock.jump(-10_000);
    second.history.listed(new Set());
    await second.stop();
    expect(read("a")).toMatchObject({ lastKnownAt: seenAt });
    expect(read("b")).toMatchObject({ lastKnownAt: clock.now(), leftAt: clock.now() });
  });

  it("continues in the lifecycle log where an earlier agent was", async () => {
    const first = new Life();
    first.see("web");
    await first.event("web", { container: app, type: "ContainerStarted" });
    await first.stop();
    const second = new Life();
    expect(second.after).toEqual({ log: "log", sequence: 1 });
    await second.stop();
    expect(store.events("web")).toMatchObject([{ message: "container app started" }]);
  });

  it("adds what containers do after their pod was deleted by force", async () => {
    const life = new Life();
    life.see("web");
    life.history.left("web", undefined, false);
    await clock.step(300);
    await life.event("web", { container: app, exitCode: 137 });
    await life.event("web", { container: { id: "s", name: "", kind: "sandbox" } });
    expect(read("web")).toMatchObject({ leftAt: expect.any(Number), exits: [{ exitCode: 137 }] });
    expect(store.events("web")).toMatchObject([{ message: "sandbox stopped" }]);
    await life.stop();
  });

  it("knows a static pod by both its UIDs", async () => {
    const life = new Life();
    life.see("etcd", {}, { annotations: { "kubernetes.io/config.hash": "of-its-file" } });
    await life.event("of-its-file", { container: app, exitCode: 1 });
    expect(read("etcd").exits).toMatchObject([{ exitCode: 1 }]);
    await life.stop();
  });

  it("knows a static pod by both its UIDs after a restart of the agent", async () => {
    const see = (life: Life) =>
      life.see("etcd", {}, { annotations: { "kubernetes.io/config.hash": "of-its-file" } });
    const first = new Life();
    see(first);
    await first.stop();
    const second = new Life();
    see(second);
    await second.event("of-its-file", { container: app, exitCode: 1 });
    expect(read("etcd").exits).toMatchObject([{ exitCode: 1 }]);
    await second.stop();
  });

  it("knows the static pods that left last by both their UIDs, and forgets those that left before", async () => {
    const life = new Life();
    const see = (name: string) =>
      life.see(name, {}, { annotations: { "kubernetes.io/config.hash": `of-${name}` } });
    see("stays");
    for (let at = 0; at < 40; at++) {
      see(`etcd-${at}`);
      life.history.left(`etcd-${at}`, undefined, false);
    }
    await clock.step(300);
    for (const name of ["stays", "etcd-0", "etcd-39"])
      await life.event(`of-${name}`, { container: app, exitCode: 1 });
    expect(["stays", "etcd-0", "etcd-39"].map((name) => read(name).exits.length)).toEqual([1, 0, 1]);
    await life.stop();
  });

  it("waits in memory while the disk is full", async () => {
    const life = new Life();
    life.see("web");
    await clock.step(300);
    database.connection.exec("PRAGMA max_page_count = 1");
    const filler = "x".repeat(1_000);
    for (let at = 0; at < 200; at++) life.see(`pod-${at}`, { message: filler });
    life.history.left("web", undefined, false);
    await clock.step(300);
    // Read from memory, not from the disk.
    expect(read("web").leftAt).not.toBeNull();
    expect(new HistoryStore(database).pod("web")?.leftAt).toBeNull();
    database.connection.exec("PRAGMA max_page_count = 1000000");
    await clock.step(5_000);
    expect(read("web").leftAt).not.toBeNull();
    expect(store.pod("pod-199")).toBeDefined();
    await life.stop();
  });

  it("finds pods by a part of their name: those that are there, then the last deleted", async () => {
    const life = new Life();
    life.see("web-1").see("web-2").see("web-3").see("db");
    life.history.left("web-2", undefined, false);
    await clock.step(300);
    life.history.left("web-1", undefined, false);
    await clock.step(300);
    const queries = new RecordQueries({} as EvictionRecords, store);
    const found = (text: string, limit: number) => {
      const { items, more } = queries.findPods(text, limit);
      return [
        ...items.map(({ uid, leftAt }) => `${uid}${leftAt === null ? "" : " deleted"}`),
        ...(more ? ["more"] : []),
      ];
    };
    expect(found("t/web", 10)).toEqual(["web-3", "web-1 deleted", "web-2 deleted"]);
    expect(found("web", 2)).toEqual(["web-3", "web-1 deleted", "more"]);
    expect(found("", 10)).toHaveLength(4);
    expect(found("%", 10)).toEqual([]);
    await life.stop();
  });

  it("keeps what is within its bounds, and every pod that is there", async () => {
    const life = new Life();
    life.see("old").see("young").see("there");
    life.history.left("old", undefined, false);
    await clock.step(300);
    await clock.step(3_600_000);
    life.history.left("young", undefined, false);
    await clock.step(300);
    expect(["old", "young", "there"].map((uid) => store.pod(uid)?.uid)).toEqual([
      undefined,
      "young",
      "there",
    ]);
    for (let at = 0; at < 100; at++) life.history.addNodeEvent(`event ${at}`);
    await life.event("there", { container: app, type: "ContainerStarted" });
    for (let at = 0; at < 50; at++) await life.event("there", { container: app, type: "ContainerStarted" });
    expect(store.events("there")).toHaveLength(40);
    expect(store.events("")).toHaveLength(100);
    await life.stop();
  });

  it("keeps the events of the node that a plugin with many conditions did not cause", async () => {
    const life = new Life();
    life.history.addNodeEvent("taint a:NoSchedule added");
    life.history.addNodeEvent("condition DiskHot set", "disk");
    for (let at = 0; at < 600; at++) life.history.addNodeEvent(`condition C${at} set`, "flapping");
    await clock.step(300);
    const messages = store.events("").map(({ message }) => message);
    expect(messages).toHaveLength(500);
    expect(messages.slice(0, 2)).toEqual(["taint a:NoSchedule added", "condition DiskHot set"]);
    await life.stop();
  });
});
