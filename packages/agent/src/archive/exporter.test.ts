import { decide } from "@nodekeeper/api/decide";
import type { RoundRecord } from "@nodekeeper/api/records";
import { afterEach, describe, expect, it } from "vitest";
import { evictPod, TestRounds, testPod } from "../eviction/testing/rounds.ts";
import { accepted, exporterSetup } from "./testing/exporter-setup.ts";

let setup: ReturnType<typeof exporterSetup>;
afterEach(() => setup.close());

const sent = () => setup.transport.requests.map(({ messages }) => messages);
const unavailable = (retryAfterMs = 0) =>
  ({ kind: "unavailable", message: "HTTP 503", retryAfterMs }) as const;
const GAP = expect.stringMatching(/^1 record missing between .*: the collector refused them$/);

/** A round that records the end of an eviction. */
function endedRound(): RoundRecord {
  const rounds = new TestRounds([]);
  rounds.outcomes = [
    {
      uid: "u1",
      namespace: "default",
      name: "web",
      result: "terminated",
      message: "pod deleted",
      selectedAt: 1,
    },
  ];
  const input = rounds.input({});
  return { id: 1, input, decision: decide(input) };
}

function start(settings?: Parameters<typeof exporterSetup>[0]): void {
  setup = exporterSetup(settings);
  setup.run();
}

describe("the exporter", () => {
  it("sends new records at its interval, in their order, and removes them when they are accepted", async () => {
    start();
    await setup.clock.step(0);
    setup.addStep("one");
    setup.addStep("two");
    expect(sent()).toEqual([]);
    await setup.clock.step(5_000);
    expect(sent()).toEqual([["one", "two"]]);
    expect(setup.store.queuedRecords()).toBe(0);
    await setup.clock.step(60_000);
    expect(sent()).toHaveLength(1);
    expect(await setup.metric("exported_records_total")).toEqual({ "": 2 });
  });

  it("repeats the same records until they are accepted, with growing delays, and only warns", async () => {
    start();
    setup.transport.answer = () => unavailable();
    await setup.clock.step(0);
    setup.addStep("one");
    await setup.clock.step(5_000);
    setup.addStep("two");
    await setup.clock.step(600_000);
    const requests = setup.transport.requests.length;
    expect(requests).toBeGreaterThan(10);
    expect(requests).toBeLessThan(40);
    const health = setup.exporter.healthCheck().check();
    expect(health).toMatchObject({ ok: true, errorId: "NK1901" });
    expect(health.warning).toContain("HTTP 503");
    expect(setup.logLines.filter(({ errorId }) => errorId === "NK1901")).toHaveLength(1);
    setup.transport.answer = () => accepted;
    await setup.clock.step(120_000);
    expect(sent().slice(requests)).toEqual([["one"], ["two"]]);
    expect(new Set(setup.transport.requests.slice(0, requests + 1).flatMap(({ ids }) => ids)).size).toBe(1);
    expect(setup.exporter.healthCheck().check().warning).toBeUndefined();
  });

  it("waits at least as long as the collector asks for", async () => {
    start();
    setup.transport.answer = () => unavailable(30_000);
    await setup.clock.step(0);
    setup.addStep("one");
    await setup.clock.step(5_000);
    await setup.clock.step(29_000);
    expect(sent()).toHaveLength(1);
    await setup.clock.step(30_000);
    expect(sent().length).toBeGreaterThan(1);
  });

  it("divides what is too large, and drops a record that is too large alone", async () => {
    start();
    setup.transport.answer = ({ messages }) =>
      messages.includes("large") ? { kind: "tooLarge", message: "HTTP 413" } : accepted;
    await setup.clock.step(0);
    for (const message of ["one", "two", "large", "three"]) setup.addStep(message);
    await setup.clock.step(10_000);
    const taken = setup.transport.requests.filter(({ messages }) => !messages.includes("large"));
    expect(taken.flatMap(({ messages }) => messages)).toEqual(["one", "two", "three", GAP]);
    expect(setup.store.queuedRecords()).toBe(0);
    const [line] = setup.logLines.filter(({ errorId }) => errorId === "NK1902");
    expect(line).toMatchObject({ dropped: 1, problem: "HTTP 413", first: { message: "large" } });
    expect(await setup.metric("dropped_records_total")).toEqual({ refused: 1 });
  });

  it("drops what the collector can't process, and goes on; keeps it while the agent is refused", async () => {
    start({ maxBatchSize: 16 });
    let isDenied = true;
    setup.transport.answer = ({ messages }) => {
      if (isDenied) return { kind: "denied", message: "HTTP 401" };
      return messages[0] === "one" ? { kind: "refused", message: "HTTP 400: no logs" } : accepted;
    };
    await setup.clock.step(0);
    setup.addStep("one");
    setup.addStep("two");
    await setup.clock.step(300_000);
    expect(setup.store.queuedRecords()).toBe(2);
    isDenied = false;
    await setup.clock.step(120_000);
    expect(sent().slice(-3)).toEqual([["one"], ["two"], [GAP]]);
    expect(setup.store.queuedRecords()).toBe(0);
  });

  it("counts and logs what a partial success rejects, and does not send it again", async () => {
    start();
    setup.transport.answer = () => ({ kind: "accepted", rejected: 1, message: "too old" });
    await setup.clock.step(0);
    setup.addStep("one");
    setup.addStep("two");
    await setup.clock.step(60_000);
    // A gap that is refused, as well, leaves none.
    expect(sent()).toEqual([["one", "two"], [GAP]]);
    expect(await setup.metric("dropped_records_total")).toEqual({ refused: 2 });
    expect(await setup.metric("exported_records_total")).toEqual({ "": 1 });
  });

  it.each([1_000, -5])("goes on after a partial success that rejects %i of two records", async (rejected) => {
    start();
    setup.transport.answer = () => ({ kind: "accepted", rejected, message: "nonsense" });
    await setup.clock.step(0);
    setup.addStep("one");
    setup.addStep("two");
    await setup.clock.step(60_000);
    expect(sent()[0]).toEqual(["one", "two"]);
    // If all were rejected, the gap was, too.
    expect(sent()).toHaveLength(rejected > 0 ? 2 : 1);
    expect(setup.store.queuedRecords()).toBe(0);
  });

  it("bounds the queue while the collector is down for a day, and exports one gap for what was lost", async () => {
    start({ maxQueued: 100 });
    setup.transport.answer = () => unavailable();
    await setup.clock.step(0);
    for (let hour = 0; hour < 24; hour++) {
      for (let at = 0; at < 10; at++) setup.addStep(`step ${hour * 10 + at}`);
      await setup.clock.step(3_600_000);
    }
    expect(setup.store.queuedRecords()).toBeLessThanOrEqual(100);
    setup.transport.answer = () => accepted;
    const before = sent().length;
    await setup.clock.step(120_000);
    const after = sent().slice(before).flat();
    const { records } = /^(?<records>\d+) records missing/.exec(after[0]!)!.groups!;
    expect(Number(records) + after.length - 1).toBe(240);
    expect(after.slice(1)).toEqual(after.slice(1).map((_, at) => `step ${Number(records) + at}`));
    expect(await setup.metric("dropped_records_total")).toEqual({ lost: Number(records) });
  });

  it("exports a gap for rounds that are no longer kept", async () => {
    start();
    await setup.clock.step(0);
    setup.addStep("one");
    setup.addRound(1);
    setup.addRound(2);
    setup.addStep("two");
    await setup.clock.step(5_000);
    await setup.clock.step(5_000);
    const messages = sent().flat();
    expect(messages).toHaveLength(3);
    expect([messages[0], messages[2]]).toEqual(["one", "two"]);
    expect(messages[1]).toMatch(/^2 records missing between .*: they reached the limits/);
  });

  it("exports a gap for a record that can't be read, and goes on", async () => {
    start();
    await setup.clock.step(0);
    setup.addStep("one");
    setup.addRound(1);
    setup.addStep("two");
    setup.sources.round = () => {
      throw new Error("not JSON");
    };
    await setup.clock.step(10_000);
    expect(sent().flat()).toEqual([
      "one",
      expect.stringMatching(/^1 record missing .* can't be read$/),
      "two",
    ]);
  });

  it("exports a refusal also if the round before it is no longer kept", async () => {
    start();
    const rounds = new TestRounds([testPod("kept", { isStatic: true })]);
    const input = rounds.input({ p: { pods: [evictPod("kept", { force: true })] } });
    setup.sources.round = (id) => (id === 1 ? undefined : { id, input, decision: decide(input) });
    await setup.clock.step(0);
    setup.addRound(1);
    setup.addRound(2);
    await setup.clock.step(10_000);
    expect(sent().flat()).toEqual([
      expect.stringMatching(/^1 record missing/),
      expect.stringMatching(/^default\/kept requested eviction refused/),
    ]);
  });

  it("drops only the record that the collector can't process, in few requests", async () => {
    start();
    setup.transport.answer = ({ messages }) =>
      messages.includes("step 40") ? { kind: "refused", message: "HTTP 400: no UTF-8" } : accepted;
    await setup.clock.step(0);
    for (let at = 0; at < 100; at++) setup.addStep(`step ${at}`);
    await setup.clock.step(10_000);
    const taken = sent().filter((messages) => !messages.includes("step 40"));
    const all = Array.from({ length: 100 }, (_, at) => `step ${at}`);
    expect(taken.flat()).toEqual([...all.filter((message) => message !== "step 40"), GAP]);
    expect(sent().length).toBeLessThan(25);
    expect(await setup.metric("dropped_records_total")).toEqual({ refused: 1 });
    expect(await setup.metric("exported_records_total")).toEqual({ "": 100 });
    const lines = setup.logLines.filter(({ errorId }) => errorId === "NK1902");
    expect(lines).toMatchObject([{ dropped: 1, of: 1, first: { message: "step 40" } }]);
  });

  it("drops records with growing delays while the collector refuses all of them", async () => {
    start();
    setup.transport.answer = () => ({ kind: "refused", message: "HTTP 400: no logs" });
    await setup.clock.step(0);
    for (let at = 0; at < 100; at++) setup.addStep(`step ${at}`);
    await setup.clock.step(600_000);
    expect(sent().length).toBeLessThan(40);
    expect(setup.store.queuedRecords()).toBeGreaterThan(70);
    setup.transport.answer = () => accepted;
    await setup.clock.step(120_000);
    expect(setup.store.queuedRecords()).toBe(0);
  });

  const signals = () => setup.transport.requests.map(({ signal }) => signal);
  const traces = () => signals().filter((signal) => signal === "traces").length;

  it.each(["unavailable", "denied"] as const)(
    "exports records while traces are %s, and the traces later, each once",
    async (kind) => {
      start();
      setup.sources.round = () => endedRound();
      setup.transport.answer = ({ signal }) =>
        signal === "logs" ? accepted : { kind, message: "INTERNAL: write EPIPE", retryAfterMs: 0 };
      await setup.clock.step(0);
      setup.addRound(1);
      await setup.clock.step(20_000);
      setup.addStep("after");
      await setup.clock.step(5_000);
      expect(sent().at(-1)).toEqual(["after"]);
      expect(setup.store.queuedRecords()).toBe(0);
      expect(setup.store.queuedTraces()).toBe(1);
      const { warning } = setup.exporter.healthCheck().check();
      expect(warning).toMatch(/^traces can't be exported since .*: INTERNAL: write EPIPE$/);
      setup.transport.answer = () => accepted;
      const before = traces();
      await setup.clock.step(120_000);
      expect(traces()).toBe(before + 1);
      expect(setup.store.queuedTraces()).toBe(0);
      expect(setup.exporter.healthCheck().check().warning).toBeUndefined();
      expect(await setup.metric("dropped_traces_total")).toEqual({});
    },
  );

  it("exports records while the receiver of traces does not respond", async () => {
    start();
    setup.sources.round = () => endedRound();
    setup.transport.answer = ({ signal }) => (signal === "logs" ? accepted : new Promise(() => {}));
    await setup.clock.step(0);
    setup.addRound(1);
    await setup.clock.step(5_000);
    await setup.clock.step(5_000);
    expect(traces()).toBe(1);
    setup.addStep("after");
    await setup.clock.step(5_000);
    expect(sent().at(-1)).toEqual(["after"]);
    // The stop sends the trace once more.
    setup.transport.answer = () => accepted;
  });

  it("drops traces if the collector takes none, and the oldest if too many wait", async () => {
    start({ maxQueued: 100 });
    setup.sources.round = (id) => ({ ...endedRound(), id });
    setup.transport.answer = ({ signal }) =>
      signal === "logs" ? accepted : { kind: "unsupported", message: "HTTP 404" };
    await setup.clock.step(0);
    setup.addRound(1);
    await setup.clock.step(20_000);
    expect(traces()).toBe(1);
    expect(await setup.metric("dropped_traces_total")).toEqual({ refused: 1 });
    expect(setup.exporter.healthCheck().check().warning).toBeUndefined();

    setup.transport.answer = ({ signal }) => (signal === "logs" ? accepted : unavailable());
    for (let id = 2; id < 152; id++) {
      setup.addRound(id);
      await setup.clock.step(10_000);
    }
    await setup.clock.step(120_000);
    expect(setup.store.queuedRecords()).toBe(0);
    expect(setup.store.queuedTraces()).toBeLessThanOrEqual(100);
    const lost = 150 - setup.store.queuedTraces();
    expect(await setup.metric("dropped_traces_total")).toEqual({ refused: 1, lost });
    expect(await setup.metric("dropped_records_total")).toEqual({});
  });

  it("goes on after a failure of the state database", async () => {
    start();
    await setup.clock.step(0);
    setup.addStep("one");
    setup.database.connection.exec("ALTER TABLE archive_queue RENAME TO away");
    await setup.clock.step(5_000);
    expect(setup.exporter.healthCheck().check().warning).toContain("archive_queue");
    setup.database.connection.exec("ALTER TABLE away RENAME TO archive_queue");
    await setup.clock.step(5_000);
    expect(sent()).toEqual([["one"]]);
    expect(setup.exporter.healthCheck().check().warning).toBeUndefined();
  });

  it("sends what waits at the stop, and gives up on a collector that does not answer", async () => {
    start();
    await setup.clock.step(0);
    setup.addStep("one");
    await setup.stop();
    expect(sent()).toEqual([["one"]]);
    expect(setup.transport.isDisposed).toBe(true);
    await setup.close();

    start();
    setup.transport.answer = () => new Promise(() => {});
    await setup.clock.step(0);
    setup.addStep("one");
    const stopped = setup.stop();
    await setup.clock.step(1_000);
    await stopped;
    expect(setup.store.queuedRecords()).toBe(1);
  });

  it("leaves no timer behind", async () => {
    start();
    await setup.clock.step(60_000);
    await setup.stop();
    expect(setup.clock.timers).toBe(0);
  });
});
