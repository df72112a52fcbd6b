import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { FakeClock, silentLogger } from "@nodekeeper/core/lib";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { LifecycleStore, StateDatabase } from "../state/index.ts";
import type { LogPosition } from "./cursor.ts";
import { createHarness } from "./testing/harness.ts";
import { MemoryRuntime } from "./testing/memory-runtime.ts";

let directory: string;
let database: StateDatabase;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "nodekeeper-lifecycle-"));
  open();
});
afterEach(() => {
  database.close();
  rmSync(directory, { recursive: true });
});
const live = new AbortController().signal;

function open(): void {
  const bootDirectory = join(directory, "run");
  const common = { clock: new FakeClock(), log: silentLogger };
  database = StateDatabase.open({ ...common, directory: join(directory, "state"), bootDirectory });
}

/** Runs an agent that stores the runtime's pods, until its first list is done. */
async function runOnce(runtime: MemoryRuntime): Promise<void> {
  const harness = createHarness({ runtime, store: new LifecycleStore(database) });
  await harness.start();
  await harness.stop();
}

/** Runs an agent until it has logged that the pod a started. Returns the position after that event. */
async function logOneEvent(runtime: MemoryRuntime): Promise<LogPosition> {
  const harness = createHarness({ runtime, store: new LifecycleStore(database) });
  await harness.start();
  runtime.addPod("a");
  await harness.clock.step(1_000);
  const { position } = harness.generator.events;
  await harness.stop();
  return position;
}

function reopen(): void {
  database.close();
  open();
}

describe("an agent that is started again", () => {
  it("emits what changed in the meantime, and continues at its consumers' positions", async () => {
    const runtime = new MemoryRuntime();
    runtime.addPod("a", ["10.4.4.4"]);
    runtime.set("a", "a1", "running");
    const first = createHarness({ runtime, store: new LifecycleStore(database) });
    await first.start();
    runtime.set("a", "a2", "running");
    await first.clock.step(1_000);
    const position = first.generator.events.position;
    await first.stop();

    reopen();
    runtime.set("a", "a1", "exited", "container", 137);
    runtime.set("a", "a-sandbox", "exited", "sandbox");
    runtime.pods.get("a")!.ips = [];
    runtime.addPod("b");
    const second = createHarness({ runtime, store: new LifecycleStore(database) });
    second.generator.restore();
    const reader = second.generator.events.read({ after: position }, live);
    await second.start();
    expect(second.emitted()).toEqual(["Started a2", "Died a1", "Died a-sandbox", "Started b-sandbox"]);
    const { value } = await reader.next();
    expect(value).toMatchObject({ kind: "event", event: { sequence: 2, exitCode: 137 } });
    expect(second.generator.statuses.get("a").status.ips).toEqual(["10.4.4.4"]);
    await second.stop();

    const third = createHarness({ runtime, store: new LifecycleStore(database) });
    await third.start();
    expect(third.emitted()).toEqual(second.emitted());
    expect(third.generator.events.get(2)).toEqual(second.generator.events.get(2));
    await third.stop();
  });

  it("has pods that did not change in the cache once they were listed, or read alone before that", async () => {
    const runtime = new MemoryRuntime();
    for (const uid of ["a", "b"]) {
      runtime.addPod(uid);
      runtime.set(uid, `${uid}1`, "running");
    }
    await runOnce(runtime);

    const clock = new FakeClock();
    const second = createHarness({ runtime, clock, store: new LifecycleStore(database) });
    const { statuses } = second.generator;
    // A list of all pods that takes its time.
    runtime.before = (call) => (call === "listPods" ? clock.sleep(5_000) : undefined);
    await second.start();
    const early = statuses.getNewerThan("a", clock.monotonic(), live);
    await clock.step(1_001);
    expect((await early).status.containers).toMatchObject([{ id: "a1", state: "running" }]);
    await clock.step(4_000);
    expect(statuses.uids().sort()).toEqual(["a", "b"]);
    expect(statuses.get("b").status.containers).toMatchObject([{ id: "b1", state: "running" }]);
    expect(second.emitted()).toEqual([]);
    await second.stop();
  });

  it("writes nothing for pods that did not change", async () => {
    const runtime = new MemoryRuntime();
    for (let at = 0; at < 50; at++) runtime.addPod(`p${at}`);
    await runOnce(runtime);
    reopen();
    const store = new LifecycleStore(database);
    const saves = vi.spyOn(store, "save");
    const second = createHarness({ runtime, store });
    await second.start();
    expect(second.generator.statuses.uids()).toHaveLength(50);
    expect(saves).not.toHaveBeenCalled();
    await second.stop();
  });

  it("gives its consumers the node as an earlier run left it, before the first list", async () => {
    const runtime = new MemoryRuntime();
    runtime.addPod("a");
    await runOnce(runtime);
    reopen();
    const second = createHarness({ runtime, store: new LifecycleStore(database) });
    second.generator.restore();
    const { value } = await second.generator.events.read({}, live).next();
    expect(value).toMatchObject({ kind: "snapshot", pods: [{ uid: "a" }] });
  });

  it("emits what started on a node that was empty before", async () => {
    const runtime = new MemoryRuntime();
    await runOnce(runtime);
    runtime.addPod("a");
    const second = createHarness({ runtime, store: new LifecycleStore(database) });
    await second.start();
    expect(second.emitted()).toEqual(["Started a-sandbox"]);
    await second.stop();
  });

  it("keeps no more events than the log does", async () => {
    const runtime = new MemoryRuntime();
    const settings = { logCapacity: 50 };
    const harness = createHarness({ runtime, store: new LifecycleStore(database), settings });
    await harness.start();
    for (let round = 0; round < 12; round++) {
      for (let at = 0; at < 100; at++) runtime.addPod(`p${round}-${at}`);
      await harness.clock.step(1_000);
    }
    await harness.stop();
    const { count } = database.connection.prepare("SELECT count(*) AS count FROM lifecycle_event").get() as {
      count: number;
    };
    expect(count).toBeLessThanOrEqual(50 + 1_000);
    const again = createHarness({ runtime, store: new LifecycleStore(database), settings });
    again.generator.restore();
    expect([again.generator.events.last, again.generator.events.length]).toEqual([1_200, 50]);
  });

  it("continues in memory while the disk is full, and saves all of it after", async () => {
    const runtime = new MemoryRuntime();
    const harness = createHarness({ runtime, store: new LifecycleStore(database) });
    await harness.start();
    const before = harness.generator.events.id;
    database.connection.exec("PRAGMA max_page_count = 1");
    for (let at = 0; at < 200; at++) runtime.addPod(`p${at}-${"x".repeat(200)}`);
    await harness.clock.step(1_000);
    expect(harness.emitted()).toHaveLength(200);
    expect(await harness.metric("log_save_failures_total")).toBeGreaterThan(0);
    // What consumers were given since may be lost with the agent, so its positions belong to another log.
    expect(harness.generator.events.id).not.toBe(before);
    database.connection.exec("PRAGMA max_page_count = 100000");
    runtime.addPod("last");
    await harness.clock.step(1_000);
    await harness.stop();

    const again = createHarness({ runtime, store: new LifecycleStore(database) });
    await again.start();
    expect(again.emitted()).toHaveLength(201);
    expect(again.generator.events.id).toBe(harness.generator.events.id);
    await again.stop();
  });

  it("tries a full disk now and then, not for each pod, and needs no news to save what is left", async () => {
    const runtime = new MemoryRuntime();
    const store = new LifecycleStore(database);
    await using harness = createHarness({ runtime, store });
    await harness.start();
    database.connection.exec("PRAGMA max_page_count = 1");
    const saves = vi.spyOn(store, "save");
    for (let at = 0; at < 200; at++) runtime.addPod(`p${at}-${"x".repeat(200)}`);
    await harness.clock.step(1_500);
    expect(saves.mock.results.filter(({ type }) => type === "throw")).not.toHaveLength(0);
    const failed = saves.mock.calls.length;
    await harness.clock.step(60_000);
    expect(saves.mock.calls.length - failed).toBeLessThan(15);
    database.connection.exec("PRAGMA max_page_count = 100000");
    await harness.clock.step(10_000);
    expect(store.log()?.last).toBe(200);
  });

  it("saves what is left when it stops", async () => {
    const runtime = new MemoryRuntime();
    const store = new LifecycleStore(database);
    const harness = createHarness({ runtime, store });
    await harness.start();
    const save = vi.spyOn(store, "save").mockImplementationOnce(() => {
      throw new Error("disk full");
    });
    runtime.addPod("a");
    await harness.clock.step(1_000);
    expect(save).toHaveBeenCalledTimes(1);
    await harness.stop();
    expect(store.log()?.last).toBe(1);
  });

  it("begins a new log where the old one can't be read, and can save that", async () => {
    const runtime = new MemoryRuntime();
    await logOneEvent(runtime);
    const store = new LifecycleStore(database);
    vi.spyOn(store, "events").mockImplementationOnce(() => {
      throw new Error("unreadable");
    });
    const second = createHarness({ runtime, store });
    await second.start();
    runtime.addPod("b");
    await second.clock.step(1_000);
    await second.stop();
    expect(second.emitted()).toEqual(["Started b-sandbox"]);
    expect(store.log()).toEqual({ id: second.generator.events.id, last: 1 });
    expect([...store.events(10)].map(({ pod }) => pod.uid)).toEqual(["b"]);
  });

  it("after a power cut, does not take a position for its own that it may have given to other events", async () => {
    const runtime = new MemoryRuntime();
    const position = await logOneEvent(runtime);
    const store = new LifecycleStore(database);
    vi.spyOn(store, "mayHaveLostEvents", "get").mockReturnValue(true);
    const second = createHarness({ runtime, store });
    second.generator.restore();
    const item = second.generator.events.read({ after: position }, live).next();
    expect(second.generator.events.last).toBe(1);
    await second.start();
    expect((await item).value).toMatchObject({ kind: "snapshot", why: "fellOff" });
    await second.stop();
  });

  it("after a power cut, gives no snapshot that is older than the lost events", async () => {
    const runtime = new MemoryRuntime();
    runtime.addPod("a");
    runtime.set("a", "a1", "running");
    await runOnce(runtime);
    // The consumer was told that it had exited.
    runtime.set("a", "a1", "exited", "container", 137);
    const store = new LifecycleStore(database);
    vi.spyOn(store, "mayHaveLostEvents", "get").mockReturnValue(true);
    const second = createHarness({ runtime, store });
    second.generator.restore();
    const item = second.generator.events.read({ after: { log: "lost", sequence: 1 } }, live).next();
    await second.start();
    const { value } = await item;
    expect(value).toMatchObject({ kind: "snapshot", why: "fellOff" });
    expect(value?.kind === "snapshot" && value.pods[0]?.containers).toMatchObject([
      { id: "a1", state: "exited" },
    ]);
    expect(second.emitted()).toEqual(["Died a1"]);
    await second.stop();
  });

  it("after a power cut, continues the log that it began, once consumers have positions in it", async () => {
    const runtime = new MemoryRuntime();
    runtime.addPod("a");
    await runOnce(runtime);
    const store = new LifecycleStore(database);
    const lost = vi.spyOn(store, "mayHaveLostEvents", "get").mockReturnValue(true);
    const second = createHarness({ runtime, store });
    await second.start();
    const { position } = second.generator.events;
    lost.mockRestore();
    reopen();
    const third = createHarness({ runtime, store: new LifecycleStore(database) });
    third.generator.restore();
    expect(third.generator.events.position).toEqual(position);
  });

  it("is not stopped by a record that can't be read back", async () => {
    const runtime = new MemoryRuntime();
    runtime.addPod("a");
    await runOnce(runtime);
    database.connection.exec("UPDATE lifecycle_record SET record = '{\"containers\": 7'");
    const second = createHarness({ runtime, store: new LifecycleStore(database) });
    await second.start();
    expect(second.emitted()).toEqual(["Started a-sandbox"]);
    await second.stop();
  });
});
