import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { GetReportContentResponse } from "@nodekeeper/core/gen/reporterplugin/v1alpha1/api.ts";
import { FakeClock, LoopTurns, NodekeeperError, Registry, silentLogger } from "@nodekeeper/core/lib";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { defaultReportingSettings } from "../assembly/testing/defaults.ts";
import { ReporterStore, StateDatabase, type StoredContent } from "../state/index.ts";
import type { ReportingContext } from "./context.ts";
import { customNodeResource, kindKey, kindPolicies } from "./kinds.ts";
import { ReporterManager } from "./manager.ts";
import { createReportingMetrics } from "./metrics.ts";
import type { ReporterSource } from "./source.ts";
import { field, message, RawText } from "./testing/contents.ts";
import { Scripted } from "./testing/scripted-source.ts";

const cnr = kindKey(customNodeResource);
const GRACE_MS = 300_000;
let directory: string;
let clock: FakeClock;
let database: StateDatabase;
const stops: (() => Promise<void>)[] = [];

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "nodekeeper-manager-"));
  clock = new FakeClock();
  database = StateDatabase.open({ directory, clock, log: silentLogger });
});
afterEach(async () => {
  for (const stop of stops.splice(0)) await stop();
  database.close();
  rmSync(directory, { recursive: true });
});

const reportOf = (value: string) => message([field("status", "topologyPolicy", value)]);
const never = () => new Promise<GetReportContentResponse>(() => {});

// The machine has been running for a day.
const bootTime = () => ({ id: "boot", uptimeMs: 86_400_000 + clock.monotonic() });

function start(
  inTree: ReporterSource[],
  settings = { pluginGracePeriod: GRACE_MS },
  readBootTime: ReportingContext["bootTime"] = bootTime,
) {
  const changes: string[][] = [];
  const notices: string[] = [];
  const registry = new Registry();
  const metrics = createReportingMetrics(registry, () => manager.contentAges());
  const policies = new Map(kindPolicies([]));
  const rest = { minWriteInterval: 20, resyncInterval: 600_000 };
  const context: ReportingContext = {
    turns: new LoopTurns(clock),
    returnMs: 10_000,
    bootTime: readBootTime,
    store: new ReporterStore(database),
    policies,
    settings: () => ({ ...defaultReportingSettings, ...rest, ...settings }),
    notify: (reason) => void notices.push(reason),
    clock,
    log: silentLogger,
    metrics,
  };
  const manager: ReporterManager = new ReporterManager(context, {
    inTree,
    maxContentBytes: 1 << 20,
    onChange: (objects) => void changes.push([...objects]),
  });
  manager.restore();
  const controller = new AbortController();
  const running = manager.run(controller.signal);
  stops.push(async () => {
    controller.abort();
    await running;
  });
  const value = (plugin: string) => manager.contents().get(plugin)?.fields[0]?.value;
  return { manager, changes, notices, settings, value, registry, metrics, policies };
}

/** @param stoppedIn by default of this boot, and as long ago as `stoppedAt` */
function store(...plugins: Partial<StoredContent>[]): void {
  const content = GetReportContentResponse.encode(reportOf("kept")).finish();
  const { id, uptimeMs } = bootTime();
  new ReporterStore(database).saveContents(
    plugins.map(({ plugin = "", stoppedAt = null, ...rest }) => ({
      ...{ plugin, content, updatedAt: clock.now(), stoppedAt },
      stoppedIn:
        stoppedAt === null
          ? undefined
          : { id, uptimeMs: Math.min(uptimeMs, uptimeMs - clock.now() + stoppedAt) },
      ...rest,
    })),
    [],
  );
}

describe("ReporterManager", () => {
  it("polls every plugin each interval, and a hung plugin delays no other", async () => {
    const hung = new Scripted("hung", never);
    const good = new Scripted("good", () => Promise.resolve(reportOf(`v${good.polls}`)));
    const { value, changes } = start([hung, good]);
    await clock.step(19_999);
    expect(good.polls).toBe(4);
    expect(value("good")).toBe("v4");
    // The deadline is 10 s: the second call started when the first timed out.
    expect(hung.polls).toBe(2);
    expect(changes.flat()).toContain(cnr);
  });

  it("reports the age of each content, also of a lost or failing plugin", async () => {
    store({ plugin: "lost" });
    await clock.step(1_000);
    const failing = new Scripted("failing", () => Promise.resolve(reportOf("good")));
    const { manager } = start([failing, new Scripted("silent", never)]);
    await clock.step(100);
    failing.answer = () => Promise.reject(new NodekeeperError("unavailable", "boom"));
    await clock.step(7_000);
    expect(Object.fromEntries(manager.contentAges())).toEqual({ lost: 8.1, failing: expect.closeTo(7.1, 0) });
  });

  it("keeps the content of a plugin that fails", async () => {
    const plugin = new Scripted("p", () => Promise.resolve(reportOf("good")));
    const { value, manager } = start([plugin]);
    await clock.step(100);
    plugin.answer = () => Promise.reject(new NodekeeperError("unavailable", "boom"));
    await clock.step(60_000);
    expect(value("p")).toBe("good");
    expect(manager.status()[0]?.lastError?.message).toMatch(/GetReportContent: boom/);
    expect(manager.fetcherHealth()).toMatchObject({
      ok: false,
      message: expect.stringMatching(/p \(.*boom/),
      errorId: "NK1805",
    });
    plugin.answer = () => Promise.resolve(reportOf("better"));
    await clock.step(6_000);
    expect(value("p")).toBe("better");
    expect(manager.fetcherHealth().ok).toBe(true);
  });

  it("uses stream messages immediately, and reopens the stream when it ends", async () => {
    const plugin = new Scripted("p", never);
    const { value } = start([plugin]);
    plugin.push(reportOf("one"));
    await clock.step(50);
    expect(value("p")).toBe("one");
    plugin.push(new Error("cut"));
    plugin.push(reportOf("two"));
    await clock.step(1_000);
    expect(value("p")).toBe("two");
  });

  it("does not let a slow poll overwrite a newer stream message", async () => {
    const slow = Promise.withResolvers<GetReportContentResponse>();
    const plugin = new Scripted("p", () => slow.promise);
    const { value } = start([plugin]);
    await clock.step(10);
    plugin.push(reportOf("newer"));
    await clock.step(50);
    slow.resolve(reportOf("older"));
    await clock.step(50);
    expect(value("p")).toBe("newer");
  });

  it("does not report a change for messages equal to the last one", async () => {
    const plugin = new Scripted("p", () => Promise.resolve(reportOf("same")));
    const { changes } = start([plugin]);
    await clock.step(100);
    const before = changes.length;
    await clock.step(30_000);
    expect(changes).toHaveLength(before);
  });

  it("reports a change of the objects in the previous and in the new content", async () => {
    const plugin = new Scripted("p", () => Promise.resolve(reportOf("x")));
    const { changes } = start([plugin]);
    await clock.step(100);
    const label = message([field("metadata", "labels", { a: "1" })], {
      group: "",
      version: "v1",
      kind: "Node",
    });
    plugin.answer = () => Promise.resolve(label);
    await clock.step(5_000);
    expect(changes.at(-1)?.sort()).toEqual([cnr, "v1/Node"].sort());
  });

  it("throttles a stream that floods, and still uses its last message", async () => {
    const plugin = new Scripted("p", never);
    const { value } = start([plugin]);
    for (let at = 0; at <= 1_000; at++) plugin.push(reportOf(`v${at}`));
    await clock.step(50);
    expect(value("p")).not.toBe("v1000");
    await clock.step(1_000);
    expect(value("p")).toBe("v1000");
  });

  it("throttles a stream that floods with large messages", async () => {
    const plugin = new Scripted("p", never);
    const { value } = start([plugin]);
    const large = (at: number) => reportOf(`v${at}${" ".repeat(1_000_000)}`);
    for (let at = 0; at < 40; at++) plugin.push(large(at));
    await clock.step(500);
    const last = () => Number(/^v(\d+) /.exec(String(value("p")))?.[1]);
    expect(last()).toBeLessThan(15);
    await clock.step(2_000);
    expect(last()).toBe(39);
  });

  it("parses messages of a plugin less often if they take long, and those of others as before", async () => {
    const costly = new Scripted("costly", never);
    const cheap = new Scripted("cheap", never);
    let spent = 0;
    const monotonic = clock.monotonic.bind(clock);
    clock.monotonic = () => monotonic() + spent;
    const { policies } = start([costly, cheap]);
    let reads = 0;
    policies.get = (key) => {
      reads++;
      spent += 50;
      return Map.prototype.get.call(policies, key);
    };
    for (let at = 0; at < 100; at++) {
      costly.push(reportOf(`v${at}`));
      await clock.step(20);
    }
    expect(reads).toBeLessThan(8);
    reads = 0;
    cheap.push(reportOf("now"));
    await clock.step(20);
    expect(reads).toBeGreaterThan(0);
  });

  it("shows the error of a stream that always fails until one lasts, with or without polls", async () => {
    const plugin = new Scripted("p", () => Promise.resolve(reportOf("polled")));
    let opened = 0;
    const breaking = vi.spyOn(plugin, "listAndWatch").mockImplementation(async function* () {
      yield reportOf(`v${opened++}`);
      throw new NodekeeperError("unavailable", "broken");
    });
    const { manager } = start([plugin]);
    const error = () => manager.status()[0]?.lastError?.message;
    for (let at = 0; at < 30; at++) {
      await clock.step(1_000);
      expect(error()).toBe("ListAndWatchReportContent: broken");
    }
    // The backoff grows even though each stream sends a message before it fails.
    expect(opened).toBeLessThan(8);
    breaking.mockRestore();
    await clock.step(60_000);
    expect(error()).toBeUndefined();
  });

  it("keeps the content of a plugin whose stream and polls fail as long as it is registered", async () => {
    const plugin = new Scripted("p", () => Promise.resolve(reportOf("last")));
    const { value, manager } = start([plugin]);
    await clock.step(100);
    const fail = () => Promise.reject(new NodekeeperError("unavailable", "broken"));
    plugin.answer = fail;
    // biome-ignore lint/correctness/useYield: a stream that fails before its first message
    vi.spyOn(plugin, "listAndWatch").mockImplementation(async function* () {
      await fail();
    });
    plugin.push(new NodekeeperError("unavailable", "broken"));
    await clock.step(3 * GRACE_MS);
    expect(value("p")).toBe("last");
    expect(manager.status()[0]).toMatchObject({ state: "running", lastError: { message: /broken/ } });
  });

  it("removes the metric series of a plugin that was dropped", async () => {
    store({ plugin: "lost" });
    const { registry, metrics } = start([]);
    metrics.messages.inc({ plugin: "lost" });
    metrics.failures.inc({ plugin: "lost", method: "GetReportContent", code: "deadline" });
    metrics.problems.inc({ plugin: "lost", reason: "json" });
    await clock.step(GRACE_MS);
    expect(await registry.metrics()).not.toContain('plugin="lost"');
  });

  it("keeps the last known good content when a message cannot be decoded", async () => {
    const plugin = new Scripted("p", () => Promise.resolve(reportOf("good")));
    const { value, manager } = start([plugin]);
    await clock.step(100);
    plugin.answer = () => Promise.resolve(message([field("status", "topologyPolicy", new RawText("{"))]));
    await clock.step(5_000);
    expect(value("p")).toBe("good");
    expect(manager.status()[0]?.problems[0]).toMatch(/not JSON/);
  });

  describe("after a restart", () => {
    it("keeps plugins' contents for the grace period, then drops them", async () => {
      store({ plugin: "lost" });
      const { value, changes, notices, manager } = start([]);
      await clock.step(GRACE_MS - 1);
      expect(value("lost")).toBe("kept");
      expect(manager.status()[0]).toMatchObject({ name: "lost", state: "stopped" });
      const before = changes.length;
      await clock.step(1);
      expect(value("lost")).toBeUndefined();
      expect(changes.slice(before)).toEqual([[cnr]]);
      expect(notices).toEqual(["ReporterPluginDropped"]);
      manager.flush();
      expect(new ReporterStore(database).contents()).toEqual([]);
    });

    it("counts the part of the grace period before the restart", async () => {
      store({ plugin: "lost", stoppedAt: clock.now() - GRACE_MS + 20_000 });
      const { value } = start([]);
      await clock.step(19_999);
      expect(value("lost")).toBe("kept");
      await clock.step(1);
      expect(value("lost")).toBeUndefined();
    });

    it("gives the full grace period if the clock jumped back", async () => {
      store({ plugin: "lost", stoppedAt: clock.now() + 86_400_000 });
      const { value } = start([]);
      await clock.step(GRACE_MS - 1);
      expect(value("lost")).toBe("kept");
      await clock.step(1);
      expect(value("lost")).toBeUndefined();
    });

    it.each([
      ["the machine has rebooted since", { id: "earlier", uptimeMs: 1_000 }, bootTime],
      ["its uptime at that time is not stored, as in a file of an older agent", undefined, bootTime],
      ["the uptime cannot be read", { id: "boot", uptimeMs: 1_000 }, () => undefined],
    ])(
      "gives the full grace period if %s, and states since when the plugin has been lost",
      async (_why, stoppedIn, readBootTime) => {
        const stoppedAt = clock.now() - 2 * GRACE_MS;
        store({ plugin: "lost", stoppedAt, stoppedIn });
        const { value, manager } = start([], { pluginGracePeriod: GRACE_MS }, readBootTime);
        expect(manager.status()).toMatchObject([{ name: "lost", stoppedAt }]);
        await clock.step(GRACE_MS - 1);
        expect(value("lost")).toBe("kept");
        await clock.step(1);
        expect(value("lost")).toBeUndefined();
      },
    );

    it("counts only what has passed if the clock was set forward, also over several restarts", async () => {
      store({ plugin: "lost" });
      for (let restart = 0; restart < 3; restart++) {
        const { value, manager } = start([]);
        await clock.step(20_000);
        expect(value("lost")).toBe("kept");
        manager.flush();
        clock.jump(2 * GRACE_MS);
      }
      const { value } = start([]);
      await clock.step(GRACE_MS - 60_001);
      expect(value("lost")).toBe("kept");
      await clock.step(1);
      expect(value("lost")).toBeUndefined();
    });

    it("gives every plugin time to register again, since it could not while the agent was down", async () => {
      store({ plugin: "served" }, { plugin: "stopped", stoppedAt: clock.now() - 2 * GRACE_MS });
      const { value } = start([], { pluginGracePeriod: 0 });
      await clock.step(9_999);
      expect(value("served")).toBe("kept");
      expect(value("stopped")).toBe("kept");
      await clock.step(1);
      expect(value("served")).toBeUndefined();
      expect(value("stopped")).toBeUndefined();
    });

    it("gives it that time also where settings change meanwhile", async () => {
      store({ plugin: "stopped", stoppedAt: clock.now() - 2 * GRACE_MS });
      const { value, manager } = start([]);
      await clock.step(5_000);
      manager.settingsChanged();
      await clock.step(4_999);
      expect(value("stopped")).toBe("kept");
      await clock.step(1);
      expect(value("stopped")).toBeUndefined();
    });

    it("applies a grace period that changes while it runs", async () => {
      store({ plugin: "lost" });
      const { value, manager, settings } = start([]);
      await clock.step(10_000);
      settings.pluginGracePeriod = 20_000;
      manager.settingsChanged();
      await clock.step(10_000);
      expect(value("lost")).toBeUndefined();
    });

    it("keeps the content of an in-tree plugin until it reports again", async () => {
      store({ plugin: "p" });
      const answer = Promise.withResolvers<GetReportContentResponse>();
      const { value } = start([new Scripted("p", () => answer.promise)]);
      await clock.step(100);
      expect(value("p")).toBe("kept");
      answer.resolve(reportOf("new"));
      await clock.step(100);
      expect(value("p")).toBe("new");
      await clock.step(2 * GRACE_MS);
      expect(value("p")).toBe("new");
    });
  });

  it("rejects unknown versions, naming the supported ones", () => {
    const { manager } = start([]);
    const candidate = {
      type: "ReporterPlugin",
      name: "p",
      endpoint: "/x",
      registrationSocket: "/x",
      versions: ["v9"],
    };
    expect(() => manager.validate(candidate)).toThrow(/supported versions.*v1alpha1.*offers v9/);
    expect(() => manager.validate({ ...candidate, versions: [] })).toThrow(/offers none/);
    manager.validate({ ...candidate, versions: ["v9", "v1alpha1"] });
  });

  it("gives up the content of a lost plugin early, and of no other", async () => {
    store({ plugin: "a" }, { plugin: "b" });
    const { manager, notices } = start([]);
    await manager.register({
      type: "ReporterPlugin",
      name: "a",
      endpoint: "/x",
      registrationSocket: "/x",
      uid: 0,
      versions: ["v1alpha1"],
      generation: 1,
    });
    for (const name of ["a", "b", "none"]) manager.forget(name, "too many plugins are lost");
    expect(manager.status().map(({ name, state }) => `${name} ${state}`)).toEqual(["a running"]);
    expect(notices).toEqual([]);
  });

  it("keeps reporting, and fails its health check, when the checkpoint cannot be written", async () => {
    store({ plugin: "lost" });
    const { manager, value } = start([]);
    database.connection.exec("DROP TABLE reporter_content");
    manager.flush();
    expect(manager.fetcherHealth()).toMatchObject({
      ok: false,
      message: expect.stringMatching(/^checkpoint: /),
      errorId: "NK1105",
    });
    expect(value("lost")).toBe("kept");
  });
});
