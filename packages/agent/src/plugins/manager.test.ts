import { mkdirSync, renameSync, rmSync, symlinkSync, unlinkSync } from "node:fs";
import { join } from "node:path";
import { NodekeeperError } from "@nodekeeper/core/lib";
import { until } from "@nodekeeper/testing/until";
import { describe, expect, it } from "vitest";
import type { PluginChange } from "./status.ts";
import { RecordingHandler, temporaryDirectory, useTestPlugins } from "./testing/setup.ts";

const { at, plugins, serve, start } = useTestPlugins();

describe("finding sockets", () => {
  it("registers what was there before, what comes later, and what is moved in", async () => {
    await serve(at("a.sock"), { name: "a" });
    const { handler } = start({ rescanInterval: 60_000 });
    await until("a", () => handler.serving.has("a"));
    await serve(at("b.sock"), { name: "b" });
    await until("b", () => handler.serving.has("b"));
    await serve(at(".c.sock"), { name: "c" });
    renameSync(at(".c.sock"), at("c.sock"));
    await until("c", () => handler.serving.has("c"));
    expect(handler.serving.get("c")).toMatchObject({
      endpoint: at("c.sock"),
      registrationSocket: at("c.sock"),
    });
  });

  it("looks into new directorys, follows symlinks to sockets, ignores names with a dot in front", async () => {
    const { handler, manager } = start({ rescanInterval: 60_000 });
    await serve(at(".hidden"), { name: "hidden" });
    mkdirSync(at("x/y"), { recursive: true });
    await serve(at("x/y/deep"), { name: "deep" });
    const elsewhere = temporaryDirectory();
    await serve(join(elsewhere.path, "s"), { name: "linked" });
    symlinkSync(join(elsewhere.path, "s"), at("link.sock"));
    await until("both", () => handler.serving.has("deep") && handler.serving.has("linked"));
    expect(manager.list().map((status) => status.name)).toEqual(["linked", "deep"]);
    elsewhere.remove();
  });

  it("makes its directory, and continues when the directory is removed and made again", async () => {
    rmSync(at(), { recursive: true });
    const { handler, manager } = start({ rescanInterval: 100 });
    await until("ready", () => manager.healthCheck().check().ok);
    rmSync(at(), { recursive: true });
    await until("made again", () => {
      try {
        mkdirSync(at("sub"));
        return true;
      } catch {
        return false;
      }
    });
    await serve(at("a.sock"), { name: "a" });
    await until("a", () => handler.serving.has("a"));
  });

  it("is not ready when the directory can't be made", async () => {
    await serve(at("file"));
    const { manager } = start({ directories: [at("file/plugins")] });
    const check = manager.healthCheck();
    await until("failure", () => check.check().message.includes("ENOTDIR"));
    expect(check.check().ok).toBe(false);
  });
});

describe("the end of a plugin", () => {
  it("deregisters when the socket is removed", async () => {
    const { handler, manager } = start();
    await serve(at("a.sock"), { name: "a" });
    await until("registered", () => handler.serving.has("a"));
    unlinkSync(at("a.sock"));
    await until("deregistered", () => manager.list().length === 0 && !handler.serving.has("a"));
    expect(handler.calls).toEqual(["register a 1", "deregister a 1: its socket was removed"]);
  });

  it("a re-created socket is registered again, without a deregistration between", async () => {
    const { handler } = start();
    const first = await serve(at("a.sock"), { name: "a" });
    await until("registered", () => handler.serving.has("a"));
    renameSync(at("a.sock"), at(".old"));
    first.close();
    await serve(at(".new"), { name: "a" });
    renameSync(at(".new"), at("a.sock"));
    await until(
      "second generation",
      () => handler.calls.includes("register a 2") || handler.calls.length > 2,
    );
    // The file did not exist for a moment: a scan may or may not have seen that. The end is the same.
    await until("served", () => handler.serving.get("a")?.generation === 2);
  });

  it("a socket replaced in one move leaves no gap", async () => {
    const { handler } = start();
    const first = await serve(at("a.sock"), { name: "a" });
    await until("registered", () => first.notices.length === 1);
    const second = await serve(at(".new"), { name: "a" });
    renameSync(at(".new"), at("a.sock"));
    await until("second notified", () => second.notices.length === 1);
    expect(handler.calls).toEqual(["register a 1", "register a 2"]);
  });

  it("a re-created socket with another name ends the old name", async () => {
    const { handler } = start();
    const first = await serve(at("a.sock"), { name: "old" });
    await until("registered", () => first.notices.length === 1);
    await serve(at(".new"), { name: "new" });
    renameSync(at(".new"), at("a.sock"));
    await until("both done", () => handler.calls.length === 3);
    expect(handler.calls).toEqual([
      "register old 1",
      "register new 2",
      "deregister old 1: its socket was re-created",
    ]);
  });

  it("when the agent stops, plugins are not deregistered", async () => {
    const running = start();
    await serve(at("a.sock"), { name: "a" });
    await until("registered", () => running.handler.serving.has("a"));
    await running.stop();
    expect(running.handler.calls).toEqual(["register a 1"]);
  });
});

describe("refusals", () => {
  const long = "x".repeat(10_000);
  it.each([
    [
      "NK1301",
      "unknown type",
      { type: "Toaster" },
      'unknown plugin type "Toaster"; accepted types: ReporterPlugin',
    ],
    [undefined, "versions", { supportedVersions: ["v9"] }, "accepted: v1alpha1"],
    ["NK1302", "empty name", { name: "" }, 'plugin name "" is refused: a name has 1 to 253'],
    ["NK1302", "slashes", { name: "a/b" }, 'plugin name "a/b" is refused'],
    ["NK1302", "dot at the end", { name: "a." }, 'plugin name "a." is refused'],
    ["NK1302", "10,000 characters", { name: long }, `${"x".repeat(100)}"... (10000 characters)`],
    ["NK1308", "relative endpoint", { endpoint: "plugin.sock" }, "must be absolute"],
    ["NK1308", "endpoint too long", { endpoint: `/${long}` }, "the kernel allows at most 107"],
    ["NK1307", "1,000 versions", { supportedVersions: Array(1_000).fill("v1") }, "at most 64"],
    ["NK1304", "reserved", { name: "system-reporter-plugin" }, "reserved for an in-tree plugin"],
  ])("the plugin is notified of %s: %s", async (errorId, _, info, reason) => {
    const { handler, at: statusAt } = start({ inTreeNames: ["system-reporter-plugin"] });
    const plugin = await serve(at("a.sock"), info);
    const notice = await until("notice", () => plugin.notices[0]);
    expect(notice.pluginRegistered).toBe(false);
    expect(notice.error).toContain(reason);
    if (errorId) expect(notice.error.startsWith(`${errorId}: `)).toBe(true);
    expect(notice.error.length).toBeLessThan(400);
    expect(statusAt(at("a.sock"))).toMatchObject({
      state: "refused",
      attempts: 1,
      ...(errorId ? { errorId } : {}),
    });
    expect(handler.calls).toEqual([]);
  });

  it("too many plugins; a free place is given to the one who waits", async () => {
    const changes: string[] = [];
    const onChange = ({ kind, name }: PluginChange) => void changes.push(`${kind} ${name}`);
    const { handler } = start({ maxPlugins: 1, onChange });
    await serve(at("a.sock"), { name: "a" });
    await until("a", () => handler.serving.has("a"));
    const second = await serve(at("b.sock"), { name: "b" });
    const notice = await until("notice", () => second.notices[0]);
    expect(notice.error).toBe("NK1305: too many plugins: the limit plugins.maxPlugins (1) is reached");
    unlinkSync(at("a.sock"));
    await until("b", () => changes.includes("registered b"));
    expect(handler.serving.has("b")).toBe(true);
    expect(changes).toEqual(["registered a", "refused b", "lost a", "registered b"]);
  });
});

describe("one name, several sockets", () => {
  it("the newer replaces without a gap, and the older comes back when the newer goes", async () => {
    const { handler, at: statusAt } = start();
    await serve(at("z-old.sock"));
    await until("old", () => handler.serving.has("plugin"));
    await serve(at("a-new.sock"));
    await until("superseded", () => statusAt(at("z-old.sock"))?.state === "superseded");
    expect(handler.calls).toEqual(["register plugin 1", "register plugin 2"]);
    expect(handler.serving.get("plugin")?.registrationSocket).toBe(at("a-new.sock"));
    unlinkSync(at("a-new.sock"));
    await until("old again", () => handler.serving.get("plugin")?.registrationSocket === at("z-old.sock"));
    expect(handler.calls.slice(2)).toEqual([
      "deregister plugin 2: its socket was removed",
      "register plugin 3",
    ]);
  });

  it("met at start, the newest wins regardless of which responds first; the older is refused or superseded", async () => {
    await serve(at("z-old.sock"));
    // Files carry the time of the kernel's tick, some milliseconds apart.
    await new Promise((resolve) => setTimeout(resolve, 20));
    await serve(at("a-new.sock"));
    const { handler, at: statusAt } = start();
    await until(
      "settled",
      () =>
        ["refused", "superseded"].includes(statusAt(at("z-old.sock"))?.state ?? "") &&
        statusAt(at("a-new.sock"))?.state === "registered",
    );
    expect(handler.serving.get("plugin")?.registrationSocket).toBe(at("a-new.sock"));
    expect(handler.calls.some((call) => call.startsWith("deregister"))).toBe(false);
  });
});

describe("handlers and notices that fail", () => {
  it("a failed handler is retried, and the plugin is notified of both", async () => {
    const { handler, at: statusAt } = start();
    handler.onRegister = ({ generation }) => {
      if (generation === 1) throw new NodekeeperError("unavailable", "not yet");
    };
    const plugin = await serve(at("a.sock"));
    await until("failed", () => statusAt(at("a.sock"))?.reason === "not yet");
    await until("registered", () => plugin.notices.length === 2);
    expect(plugin.notices).toEqual([
      { pluginRegistered: false, error: "not yet" },
      { pluginRegistered: true, error: "" },
    ]);
    expect(handler.calls).toEqual(["register plugin 1", "register plugin 2"]);
  });

  it("a failed success notice is repeated without a second registration", async () => {
    const { handler, at: statusAt } = start();
    const plugin = await serve(at(".a"));
    // Until the reason was seen: on a busy machine one failure may pass between two looks.
    plugin.failNotices = Number.POSITIVE_INFINITY;
    renameSync(at(".a"), at("a.sock"));
    await until("reason", () => statusAt(at("a.sock"))?.reason?.includes("NotifyRegistrationStatus failed"));
    plugin.failNotices = 0;
    await until("notice", () => plugin.notices.length === 1);
    expect(handler.calls).toEqual(["register plugin 1"]);
    await until("no reason left", () => statusAt(at("a.sock"))?.reason === undefined);
    expect(plugin.infoCalls).toBe(1);
  });

  it("calls of a handler for one name never overlap", async () => {
    const { handler } = start();
    let inside = 0;
    let most = 0;
    handler.onRegister = async () => {
      most = Math.max(most, ++inside);
      await new Promise((resolve) => setTimeout(resolve, 50));
      inside--;
    };
    await Promise.all([1, 2, 3].map((n) => serve(at(`${n}.sock`))));
    await until("all answered", () => plugins.every((plugin) => plugin.notices.length > 0));
    expect(most).toBe(1);
    expect(handler.calls.length).toBeGreaterThan(0);
  });

  it("a handler that throws in deregister ends nothing else", async () => {
    const { handler, manager } = start();
    handler.deregister = () => {
      throw new Error("defect");
    };
    await serve(at("a.sock"), { name: "a" });
    await until("a", () => handler.serving.has("a"));
    unlinkSync(at("a.sock"));
    await until("away", () => manager.list().length === 0);
    await serve(at("b.sock"), { name: "b" });
    await until("b", () => handler.serving.has("b"));
  });
});

it("does not start with two handlers of one type, because one would never be called", () => {
  const handlers = [new RecordingHandler("DRAPlugin"), new RecordingHandler("DRAPlugin")];
  expect(() => start({ handlers })).toThrow("two handlers for plugins of type DRAPlugin");
});

it("counts what it did", async () => {
  const { handler, registry } = start();
  await serve(at("a.sock"), { name: "a" });
  await serve(at("b.sock"), { type: "Toaster" });
  await until(
    "both",
    () => plugins.every((plugin) => plugin.notices.length === 1) && handler.serving.has("a"),
  );
  const text = await registry.metrics();
  expect(text).toContain(
    'nodekeeper_plugins_registrations_total{type="ReporterPlugin",result="registered"} 1',
  );
  expect(text).toContain('nodekeeper_plugins_registrations_total{type="unknown",result="refused"} 1');
  expect(text).toContain('nodekeeper_plugins_plugins{type="ReporterPlugin",state="registered"} 1');
  expect(text).toContain('nodekeeper_plugins_plugins{type="unknown",state="refused"} 1');
});
