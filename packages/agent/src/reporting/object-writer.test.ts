import { cpSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  ApiStatusError,
  type ApplyOptions,
  type GroupVersionKind,
  type KubeClient,
  type KubeObject,
  type WatchHandler,
} from "@nodekeeper/core/kube";
import { FakeClock, LoopTurns, NodekeeperError, Registry, silentLogger } from "@nodekeeper/core/lib";
import { afterEach, expect, it } from "vitest";
import { defaultReportingSettings } from "../assembly/testing/defaults.ts";
import { ReporterStore, StateDatabase } from "../state/index.ts";
import { encodeContent, type PluginContent } from "./content.ts";
import type { ReportingContext } from "./context.ts";
import { customNodeResource, kindKey, kindPolicies, node } from "./kinds.ts";
import { createReportingMetrics } from "./metrics.ts";
import { Publisher } from "./publisher.ts";
import { contentOf, field, message, reportsOf } from "./testing/contents.ts";

const ends: (() => Promise<void> | void)[] = [];
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end();
});

interface Apply {
  body: string;
  dryRun: boolean;
  at: number;
}

/** A publisher with a server consisting of two functions. Time advances only when stepped. */
async function setUp({
  pluginGracePeriod = 0,
  live = undefined as KubeObject | undefined,
  directory = mkdtempSync(join(tmpdir(), "nodekeeper-writer-")),
} = {}) {
  const clock = new FakeClock();
  const database = StateDatabase.open({ directory, clock, log: silentLogger });
  const contents = new Map<string, PluginContent>();
  const watches: { kind: string; handler: WatchHandler }[] = [];
  const applies: Apply[] = [];
  const server = {
    /** Returns the error that an apply throws. */
    fault: (_body: string): Error | undefined => undefined,
    /** Returns the object as stored after an apply. */
    stored: (object: KubeObject) => object,
    /** What the response to an apply waits for. */
    response: Promise.resolve(),
    live,
    /** The error that a read throws. */
    readFault: undefined as Error | undefined,
    reads: 0,
  };
  const client: Partial<KubeClient> = {
    resolve: async (kind: GroupVersionKind) => ({
      ...kind,
      plural: kind.kind.toLowerCase(),
      namespaced: false,
      verbs: [],
      subresources: ["status"],
    }),
    async get() {
      server.reads++;
      if (server.readFault) throw server.readFault;
      if (!server.live) throw new NodekeeperError("notFound", "not there");
      return server.live;
    },
    async apply(_, object: KubeObject, { dryRun = false }: ApplyOptions = {}) {
      const body = JSON.stringify(object);
      applies.push({ body, dryRun, at: clock.monotonic() });
      const fault = server.fault(body);
      if (fault) throw fault;
      await server.response;
      return server.stored(object);
    },
  };
  const registry = new Registry();
  const context: ReportingContext = {
    turns: new LoopTurns(clock),
    store: new ReporterStore(database),
    policies: kindPolicies([]),
    returnMs: 0,
    bootTime: () => undefined,
    notify: () => {},
    settings: () => ({
      ...defaultReportingSettings,
      minWriteInterval: 20,
      resyncInterval: 3_600_000,
      pluginGracePeriod,
    }),
    clock,
    log: silentLogger,
    metrics: createReportingMetrics(registry),
  };
  const publisher = new Publisher(context, {
    client: client as KubeClient,
    fieldManager: "nodekeeper",
    watch: ({ resource: { kind }, handler }) => {
      watches.push({ kind, handler });
      return {
        run: (signal) => new Promise((resolve) => signal.addEventListener("abort", () => resolve())),
        healthCheck: () => ({ name: "watch", kind: "ready", check: () => ({ ok: true, message: "" }) }),
      };
    },
    nodeName: "n1",
    reports: reportsOf(contents),
    isFrozenTaint: () => false,
    random: () => 0,
  });
  const controller = new AbortController();
  const running = publisher.run(controller.signal);
  ends.push(async () => {
    controller.abort();
    await running;
    database.close();
    rmSync(directory, { recursive: true });
  });
  const report = async (plugin: string, value: string, kind = customNodeResource) => {
    const fields =
      kind === node ? [field("metadata", "labels", { l: value })] : [field("status", plugin, value)];
    contents.set(plugin, contentOf(message(fields, kind)));
    publisher.touch([kindKey(kind)]);
    await clock.step(100);
  };
  const withdraw = async (plugin: string, kind = customNodeResource) => {
    contents.delete(plugin);
    publisher.touch([kindKey(kind)]);
    await clock.step(100);
  };
  const repairs = async () => {
    const text = await registry.metrics();
    return Number(/^nodekeeper_reporting_repairs_total\{.*\} (\d+)$/m.exec(text)?.[1] ?? 0);
  };
  return { clock, server, applies, watches, publisher, report, withdraw, repairs };
}

const away = () => new NodekeeperError("unavailable", "connection refused");
const refusePoison = (body: string) =>
  body.includes("poison") ? new NodekeeperError("invalid", "poison: Invalid value") : undefined;
const last = (applies: readonly Apply[]) => applies.filter(({ dryRun }) => !dryRun).at(-1)!.body;

it("writes immediately when the watch is open again after an outage", async () => {
  const { clock, server, applies, watches, report, publisher } = await setUp();
  await report("p", "old");
  server.fault = away;
  await report("p", "new");
  await clock.step(120_000);
  const tries = applies.length;
  server.fault = () => undefined;
  watches[0]!.handler.onOpen?.();
  await clock.step(100);
  expect(applies.length).toBe(tries + 1);
  expect(publisher.status()[0]).toMatchObject({ pending: false, lastError: undefined });
});

it("waits as long as the server requested, although its watch is open", async () => {
  const { clock, server, applies, watches, report } = await setUp();
  await report("p", "old");
  server.fault = () => new NodekeeperError("throttled", "too much", { retryAfterMs: 200_000 });
  await report("p", "new");
  const tries = applies.length;
  watches[0]!.handler.onOpen?.();
  await clock.step(199_000);
  expect(applies.length).toBe(tries);
});

it("applies again when a write whose response was lost can't arrive any more: it may have overwritten a later one", async () => {
  const { clock, server, applies, report } = await setUp();
  await report("p", "first");
  server.fault = () => new NodekeeperError("deadline", "no response within 10 s");
  await report("p", "old");
  server.fault = () => undefined;
  await report("p", "new");
  await clock.step(10_000);
  const before = applies.length;
  expect(last(applies)).toContain("new");
  await clock.step(60_000);
  expect(applies.slice(before).map(({ body }) => body)).toEqual([last(applies)]);
  expect(last(applies)).toContain("new");
  await clock.step(600_000);
  expect(applies).toHaveLength(before + 1);
});

it("withdraws again what a write whose response was lost may have published after the withdrawal", async () => {
  const { clock, server, applies, report, withdraw } = await setUp();
  await report("p", "first");
  server.fault = () => new NodekeeperError("deadline", "no response within 10 s");
  await report("p", "late");
  server.fault = () => undefined;
  server.live = { metadata: { name: "n1" } };
  await withdraw("p");
  await clock.step(10_000);
  const before = applies.length;
  expect(last(applies)).not.toContain("late");
  await clock.step(60_000);
  expect(applies).toHaveLength(before + 1);
  expect(last(applies)).not.toContain("late");
});

it("withdraws what the first write may have published, although its response was lost", async () => {
  const { clock, server, applies, report, withdraw } = await setUp();
  server.fault = (body) =>
    body.includes("first") ? new NodekeeperError("deadline", "no response within 10 s") : undefined;
  await report("p", "first");
  server.fault = () => undefined;
  server.live = { metadata: { name: "n1" } };
  const before = applies.length;
  await withdraw("p");
  await clock.step(10_000);
  expect(applies.slice(before).map(({ body }) => body.includes("first"))).toContain(false);
  expect(last(applies)).not.toContain("first");
});

it("takes a change once for one of another client, however long the repair fails", async () => {
  const { clock, server, watches, report, publisher, repairs } = await setUp();
  server.live = labelled("old", 0);
  server.fault = away;
  await report("p", "new", node);
  const { handler } = watches.find(({ kind }) => kind === "Node")!;
  for (let heartbeat = 0; heartbeat < 20; heartbeat++) {
    handler.onUpsert(labelled(undefined, 1));
    await clock.step(10_000);
  }
  expect(await repairs()).toBe(1);
  expect(publisher.status().flatMap(({ contested }) => contested)).toEqual([]);
});

it("does not take its own first write for one of another client, however late the response is", async () => {
  const { clock, server, applies, watches, report, repairs } = await setUp();
  server.live = labelled(undefined, 0);
  server.stored = () => labelled("new", 5);
  const { promise, resolve } = Promise.withResolvers<void>();
  server.response = promise;
  await report("p", "new", node);
  watches.find(({ kind }) => kind === "Node")!.handler.onUpsert(labelled("new", 5));
  await clock.step(5_000);
  resolve();
  await clock.step(60_000);
  expect(applies).toHaveLength(1);
  expect(await repairs()).toBe(0);
});

it("takes back what a late write of an earlier agent process adds to a part that this one has not written", async () => {
  const { clock, server, applies, watches, report } = await setUp();
  server.live = labelled(undefined, 0);
  server.stored = () => labelled("new", 5);
  await report("p", "new", node);
  const before = applies.length;
  const arrived = {
    manager: "nodekeeper",
    operation: "Apply",
    subresource: "status",
    time: "2026-01-01T00:00:03Z",
    fieldsV1: { "f:status": { "f:capacity": { "f:example.com/widget": {} } } },
  };
  const { metadata } = labelled("new", 5);
  const managedFields = [...metadata.managedFields!, arrived];
  const status = { capacity: { "example.com/widget": "1" } };
  watches
    .find(({ kind }) => kind === "Node")!
    .handler.onUpsert({ metadata: { ...metadata, managedFields }, status });
  await clock.step(60_000);
  expect(applies.slice(before)).toHaveLength(1);
  expect(last(applies)).not.toContain("widget");
});

/** The Node with a label that the agent's field manager applied, or without. */
function labelled(value: string | undefined, second: number): KubeObject {
  const managedFields = [
    {
      manager: "nodekeeper",
      operation: "Apply",
      time: `2026-01-01T00:00:0${second}Z`,
      fieldsV1: { "f:metadata": { "f:labels": { "f:l": {} } } },
    },
  ];
  const labels = { l: value };
  return {
    metadata: { name: "n1", ...(value === undefined ? {} : { labels, managedFields }) },
  } as KubeObject;
}

it.each([
  { what: "overwrites a value", arrives: labelled("old", 6), isRepaired: true },
  { what: "overwrites a value within the same second", arrives: labelled("old", 5), isRepaired: true },
  { what: "is seen late", arrives: labelled("old", 4), isRepaired: false },
])(
  "a write of an earlier agent process that $what: applied again $isRepaired",
  async ({ arrives, isRepaired }) => {
    const { clock, server, applies, watches, report } = await setUp();
    server.live = labelled(undefined, 0);
    server.stored = () => labelled("new", 5);
    await report("p", "new", node);
    const before = applies.length;
    watches.find(({ kind }) => kind === "Node")!.handler.onUpsert(arrives);
    await clock.step(60_000);
    expect(applies.length - before).toBe(isRepaired ? 1 : 0);
    expect(last(applies)).toContain("new");
  },
);

it("does not repeat a write whose values the API server normalises", async () => {
  const { clock, server, applies, watches, report } = await setUp();
  server.live = labelled(undefined, 0);
  server.stored = () => labelled("normalised", 5);
  await report("p", "new", node);
  const before = applies.length;
  watches.find(({ kind }) => kind === "Node")!.handler.onUpsert(labelled("normalised", 5));
  await clock.step(60_000);
  expect(applies).toHaveLength(before);
});

it("withdraws again what a write of an earlier agent process brings back after the withdrawal", async () => {
  const { clock, server, applies, watches, report, withdraw } = await setUp();
  server.live = labelled(undefined, 0);
  server.stored = () => labelled("first", 5);
  await report("p", "first", node);
  server.stored = () => labelled(undefined, 0);
  await withdraw("p", node);
  const before = applies.length;
  watches.find(({ kind }) => kind === "Node")!.handler.onUpsert(labelled("late", 6));
  await clock.step(60_000);
  expect(applies.length - before).toBe(1);
  expect(last(applies)).not.toContain("first");
});

it("does not apply again after an answer of the API server, which settles the write", async () => {
  const { clock, server, applies, report } = await setUp();
  await report("p", "first");
  const answer = { httpStatus: 503, summary: { reason: "", message: "busy", causes: [] } } as never;
  server.fault = () => new ApiStatusError("unavailable", "busy", answer, undefined);
  await report("p", "old");
  server.fault = () => undefined;
  await clock.step(10_000);
  const before = applies.length;
  await clock.step(600_000);
  expect(applies).toHaveLength(before);
});

it("watches a Node that does not exist at the start, and writes when it is created", async () => {
  const { clock, server, applies, watches, report } = await setUp();
  await report("p", "x", node);
  await clock.step(120_000);
  expect(applies).toEqual([]);
  expect(watches.map(({ kind }) => kind)).toEqual(["Node"]);
  server.live = { metadata: { name: "n1", uid: "u" } };
  watches[0]!.handler.onUpsert(server.live);
  await clock.step(100);
  expect(applies).toHaveLength(1);
});

it("backs off for a plugin whose changing content is always rejected, and publishes the others", async () => {
  const { clock, server, applies, report } = await setUp();
  server.fault = refusePoison;
  await report("bad", "good");
  await report("neighbour", "n0");
  const before = applies.length;
  for (let at = 0; at < 300; at++) {
    await report("bad", `poison-${at}`);
    await clock.step(900);
  }
  // Five minutes, with three to four requests per attempt.
  expect(applies.length - before).toBeLessThan(60);
  await report("neighbour", "n1");
  expect(last(applies)).toContain("n1");
  await report("bad", "fixed");
  await clock.step(60_000);
  expect(applies.filter(({ body, dryRun }) => !dryRun && body.includes("fixed"))).not.toEqual([]);
});

it("retries unchanged content later, since the server's rules may have changed", async () => {
  const { clock, server, applies, report, publisher } = await setUp();
  server.fault = refusePoison;
  await report("bad", "poison");
  expect(publisher.status()[0]?.quarantined).toHaveProperty("bad");
  server.fault = () => undefined;
  await clock.step(601_000);
  expect(last(applies)).toContain("poison");
  expect(publisher.status()[0]?.quarantined).toEqual({});
});

const predecessor: KubeObject = {
  metadata: {
    name: "n1",
    uid: "u",
    managedFields: [
      {
        manager: "nodekeeper",
        operation: "Apply",
        subresource: "status",
        fieldsV1: { "f:status": { "f:q": {}, "f:zones": { "f:a": {}, "f:b": {} } } },
      },
    ],
  },
  status: { q: "1", zones: { a: "1", b: "1", theirs: "1" }, theirs: "1" },
};
const statusOf = (applies: readonly Apply[]) => JSON.parse(last(applies)).status;

it("keeps fields published by an earlier agent until a plugin reports them, or for the grace period", async () => {
  const { clock, server, applies, report, publisher } = await setUp({ pluginGracePeriod: 300_000 });
  server.live = predecessor;
  await report("p", "x");
  expect(statusOf(applies)).toEqual({ p: "x", q: "1", zones: { a: "1", b: "1" } });
  expect(publisher.status()[0]?.unclaimed).toEqual(["status.q", "status.zones.a", "status.zones.b"]);
  await report("q", "2");
  expect(statusOf(applies)).toEqual({ p: "x", q: "2", zones: { a: "1", b: "1" } });
  await clock.step(290_000);
  expect(statusOf(applies)).toHaveProperty("zones");
  await clock.step(20_000);
  expect(statusOf(applies)).toEqual({ p: "x", q: "2" });
  expect(publisher.status()[0]?.unclaimed).toEqual([]);
});

it("removes fields published by an earlier agent if no plugin reports anything", async () => {
  const { clock, server, applies } = await setUp({ live: predecessor });
  await clock.step(1_000);
  expect(server.live).toBe(predecessor);
  expect(applies.filter(({ body }) => body.includes("CustomNodeResource"))).toHaveLength(1);
  expect(statusOf(applies)).toBeUndefined();
});

it("removes them although the object could not be read at the start, for example while permissions were missing", async () => {
  const { clock, server, applies } = await setUp({ live: predecessor });
  server.readFault = new NodekeeperError("forbidden", "403");
  await clock.step(30_000);
  expect(applies).toEqual([]);
  server.readFault = undefined;
  await clock.step(60_000);
  expect(applies.filter(({ body }) => body.includes("CustomNodeResource"))).toHaveLength(1);
  expect(statusOf(applies)).toBeUndefined();
});

it("reads an object that no plugin reports ever more rarely if it must not read it", async () => {
  const { clock, server } = await setUp();
  server.readFault = new NodekeeperError("forbidden", "403");
  await clock.step(3_600_000);
  // Of the CustomNodeResource and the Node.
  expect(server.reads).toBeLessThan(60);
});

it("reads an object at the next resync that it must not read, and whose kind is then no longer served", async () => {
  const { clock, server } = await setUp();
  server.readFault = new NodekeeperError("forbidden", "403");
  await clock.step(30_000);
  server.readFault = new NodekeeperError("unsupported", "not served");
  await clock.step(10_000);
  const before = server.reads;
  await clock.step(60_000);
  expect(server.reads).toBeLessThanOrEqual(before + 2);
});

it("applies a part again each resync interval, although the other one changes all the time", async () => {
  const { clock, applies, report } = await setUp();
  await report("labels", "x", customNodeResource);
  for (let minute = 0; minute < 130; minute++) {
    await report("p", `v${minute}`);
    await clock.step(59_900);
  }
  const main = applies.filter(({ body }) => !body.includes('"status"'));
  // At the start, after one hour, and after two.
  expect(main).toHaveLength(3);
});

/** Returns faults that refuse the next `count` bodies that match. */
function refuseNext(count: number, pattern: RegExp) {
  return (body: string) =>
    pattern.test(body) && count-- > 0 ? new NodekeeperError("invalid", "refused by chance") : undefined;
}

/** Returns a state directory with last known good content, as a loss of power leaves it. */
function afterPowerLoss(status: PluginContent): string {
  const directory = mkdtempSync(join(tmpdir(), "nodekeeper-writer-"));
  const clock = new FakeClock();
  using database = StateDatabase.open({
    directory: join(directory, "before"),
    clock,
    log: silentLogger,
    bootId: "before",
  });
  const messages = new Map([["q", encodeContent(status)]]);
  new ReporterStore(database).saveLastGood(kindKey(customNodeResource), "status", messages);
  cpSync(join(directory, "before"), join(directory, "after"), { recursive: true });
  return join(directory, "after");
}

it("publishes for a rejected report what is published already, since stored content may be older after a power loss", async () => {
  const older = contentOf(message([field("status", "q", "0")], customNodeResource));
  const { server, applies, report } = await setUp({ directory: afterPowerLoss(older) });
  server.live = predecessor;
  server.fault = refusePoison;
  await report("q", "poison");
  expect(statusOf(applies)).toMatchObject({ q: "1" });
});

it("keeps fields published by an earlier agent although the server refuses them once, and names no plugin for it", async () => {
  const { clock, server, applies, report, publisher } = await setUp({ pluginGracePeriod: 300_000 });
  server.live = predecessor;
  // The write, and then the dry run of the same fields.
  server.fault = refuseNext(2, /"q"/);
  await report("p", "x");
  await clock.step(10_000);
  expect(statusOf(applies)).toEqual({ p: "x", q: "1", zones: { a: "1", b: "1" } });
  expect(
    applies.filter(({ body, dryRun }) => !dryRun && body.includes('"status"') && !body.includes('"q"')),
  ).toEqual([]);
  expect(publisher.status()[0]?.quarantined).toEqual({});
});

it("withdraws no accepted content of a plugin because the server refuses it once", async () => {
  const { clock, server, applies, report, publisher } = await setUp();
  await report("a", "a1");
  await report("b", "b1");
  const before = applies.length;
  server.fault = refuseNext(2, /"b1"/);
  await report("a", "a2");
  await clock.step(10_000);
  expect(statusOf(applies)).toEqual({ a: "a2", b: "b1" });
  const written = applies.slice(before).filter(({ dryRun }) => !dryRun);
  expect(written.filter(({ body }) => !body.includes("b1"))).toEqual([]);
  expect(publisher.status()[0]?.quarantined).toEqual({});
});

it("quarantines accepted content that the server refuses again and again, since its rules have changed", async () => {
  const { clock, server, applies, report, publisher } = await setUp();
  await report("a", "a1");
  await report("b", "b1");
  server.fault = (body) =>
    body.includes("b1") ? new NodekeeperError("invalid", "b1 is too old") : undefined;
  await report("a", "a2");
  await clock.step(60_000);
  expect(statusOf(applies)).toEqual({ a: "a2" });
  expect(publisher.status()[0]?.quarantined).toEqual({ b: expect.stringContaining("too old") });
});
