import { mkdirSync, readdirSync, renameSync, rmSync, unlinkSync, writeFileSync } from "node:fs";
import { createServer as createSocketServer } from "node:net";
import { basename, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { Channel } from "@grpc/grpc-js";
import {
  type GetReportContentResponse,
  ReporterPluginDefinition,
} from "@nodekeeper/core/gen/reporterplugin/v1alpha1/api.ts";
import { dialUnix } from "@nodekeeper/core/grpc";
import { FakeClock, silentLogger } from "@nodekeeper/core/lib";
import { until } from "@nodekeeper/testing/until";
import { type ClientError, createClient } from "nice-grpc";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import {
  type RunningManager,
  startManager,
  temporaryDirectory,
} from "../../agent/src/plugins/testing/setup.ts";
import {
  customNodeResource,
  metadata,
  node,
  type ReportContent,
  type ReporterPlugin,
  type ReporterPluginOptions,
  serveReporterPlugin,
  spec,
  status,
} from "./index.ts";

let directory: ReturnType<typeof temporaryDirectory>;
const plugins: ReporterPlugin[] = [];
const agents: RunningManager[] = [];
const channels: Channel[] = [];

function serve(options: Partial<ReporterPluginOptions> = {}): ReporterPlugin {
  const plugin = serveReporterPlugin({
    name: "sample",
    socketDir: directory.path,
    report: async function* () {
      yield numbered(1);
    },
    ...options,
  });
  plugins.push(plugin);
  return plugin;
}

function agent(...[options]: [Parameters<typeof startManager>[1]?]): RunningManager {
  const started = startManager(directory.path, options);
  agents.push(started);
  return started;
}

function clientOf(plugin: ReporterPlugin) {
  const channel = dialUnix(plugin.socketPath, { maxReceiveBytes: 4 * 1024 * 1024 });
  channels.push(channel);
  return createClient(ReporterPluginDefinition, channel);
}

const numbered = (n: number): ReportContent[] => [node(metadata("labels", { n: String(n) }))];
const numberIn = ({ content }: GetReportContentResponse): number =>
  Number(JSON.parse(Buffer.from(content[0]!.field[0]!.value).toString()).n);

beforeEach(() => {
  directory = temporaryDirectory();
});

afterEach(async () => {
  for (const channel of channels.splice(0)) channel.close();
  await Promise.all([...plugins.splice(0).map((p) => p.stop()), ...agents.splice(0).map((a) => a.stop())]);
  directory.remove();
});

describe("registration", () => {
  it("is registered by the agent over a real socket, is notified, and leaves nothing behind", async () => {
    const { handler, at } = agent();
    let registered = 0;
    const plugin = serve({ onRegistered: () => registered++ });
    await plugin.ready;
    await until("registered", () => registered === 1 && at(plugin.socketPath)?.state === "registered");
    expect(plugin.registration).toEqual({ state: "registered" });
    await plugin.stop();
    await until("deregistered", () => handler.calls.length === 2);
    expect(handler.calls).toEqual(["register sample 1", "deregister sample 1: its socket was removed"]);
    expect(readdirSync(directory.path)).toEqual([]);
  });

  it("hands the reason of a refusal to the author", async () => {
    agent({ inTreeNames: ["sample"] });
    const reasons: string[] = [];
    const plugin = serve({ onRefused: (reason) => reasons.push(reason) });
    await until("refused", () => reasons[0]?.includes("reserved for an in-tree plugin"));
    expect(plugin.registration).toMatchObject({ state: "refused" });
  });

  it("serves again when its socket is removed, or the whole directory", async () => {
    const { handler } = agent();
    const plugin = serve();
    await until("registered", () => handler.serving.get("sample")?.generation === 1);
    unlinkSync(plugin.socketPath);
    await until("registered again", () => handler.serving.get("sample")?.generation === 2);
    rmSync(directory.path, { recursive: true });
    mkdirSync(directory.path, { recursive: true });
    await until("and again", () => (handler.serving.get("sample")?.generation ?? 0) >= 3);
    expect(numberIn(await clientOf(plugin).getReportContent({}))).toBe(1);
  });
});

describe("the socket", () => {
  it.each([
    ["bad/name", "letters, digits"],
    ["x".repeat(120), "the kernel allows at most 107"],
  ])("name %s is an error", async (name, message) => {
    await expect(serve({ name }).ready).rejects.toThrow(message);
  });

  it("a second instance is an error, and the first continues", async () => {
    const first = serve();
    await first.ready;
    await expect(serve().ready).rejects.toMatchObject({ code: "conflict" });
    expect(numberIn(await clientOf(first).getReportContent({}))).toBe(1);
  });

  it("in a rolling update the new instance is registered before the old one ends, and keeps its socket", async () => {
    const { handler, at } = agent();
    const stale = createSocketServer().listen(join(directory.path, "kept"));
    await until("listening", () => stale.listening);
    renameSync(join(directory.path, "kept"), join(directory.path, "sample-0123abcd.sock"));
    stale.close();
    const before = serve({ rollingUpdate: true });
    await until("registered", () => before.registration.state === "registered");
    expect(readdirSync(directory.path)).toEqual([basename(before.socketPath)]);
    const after = serve({ rollingUpdate: true });
    await until("registered", () => after.registration.state === "registered");
    expect(at(before.socketPath)?.state).toBe("superseded");
    await before.stop();
    await until("the old socket is forgotten", () => at(before.socketPath) === undefined);
    expect(readdirSync(directory.path)).toEqual([basename(after.socketPath)]);
    expect(handler.calls).toEqual(["register sample 1", "register sample 2"]);
    expect(at(after.socketPath)?.state).toBe("registered");
  });

  it("without a directory is refused in a sentence, at the author's line", () => {
    // A plain JavaScript plugin has no types that would require it.
    const missing = () => serve({ socketDir: undefined as unknown as string });
    expect(missing).toThrow(/^socketDir is missing: the directory that the agent watches, such as "\//);
    expect(missing).toThrow(expect.objectContaining({ stack: expect.stringContaining("serve.test.ts") }));
  });

  it("a stale socket is replaced, a file that is no socket is left alone", async () => {
    writeFileSync(join(directory.path, "file.sock"), "precious");
    await expect(serve({ name: "file" }).ready).rejects.toThrow("is no socket");
    const stale = createSocketServer().listen(join(directory.path, "kept"));
    await until("listening", () => stale.listening);
    const { linkSync } = await import("node:fs");
    linkSync(join(directory.path, "kept"), join(directory.path, "sample.sock"));
    stale.close();
    const plugin = serve();
    await plugin.ready;
    expect(numberIn(await clientOf(plugin).getReportContent({}))).toBe(1);
  });

  it("stops when another process takes the socket over, and leaves it alone", async () => {
    const plugin = serve();
    await plugin.ready;
    unlinkSync(plugin.socketPath);
    const other = createSocketServer().listen(plugin.socketPath);
    // The plugin may look for its socket between the two, and finds the other process when it serves again.
    await expect(plugin.closed).rejects.toThrow(/another process (took the socket|serves )/);
    expect(readdirSync(directory.path)).toEqual(["sample.sock"]);
    other.close();
  });
});

describe("content", () => {
  it("GetReportContent waits for the first value", async () => {
    const first = Promise.withResolvers<void>();
    const plugin = serve({
      report: async function* () {
        await first.promise;
        yield numbered(7);
      },
    });
    await plugin.ready;
    const answer = clientOf(plugin).getReportContent({});
    await expect(
      clientOf(plugin).getReportContent({}, { signal: AbortSignal.timeout(50) }),
    ).rejects.toThrow();
    first.resolve();
    expect(numberIn(await answer)).toBe(7);
  });

  it("a slow stream skips values and always gets the last one", async () => {
    const last = 3_000;
    const plugin = serve({
      report: async function* () {
        for (let n = 1; n <= last; n++) {
          if (n % 50 === 0) await sleep(1);
          yield [node(metadata("labels", { n: String(n), padding: "x".repeat(20_000) }))];
        }
      },
    });
    await plugin.ready;
    const seen: number[] = [];
    for await (const response of clientOf(plugin).listAndWatchReportContent({})) {
      seen.push(numberIn(response));
      if (seen.at(-1) === last) break;
      await sleep(5);
    }
    expect(seen.length).toBeLessThan(last / 2);
    expect(seen).toEqual([...seen].sort((a, b) => a - b));
  });

  it("a report that throws fails calls with its message, and the next stream has the next value", async () => {
    const clock = new FakeClock();
    let runs = 0;
    const plugin = serve({
      clock,
      log: silentLogger,
      report: async function* () {
        yield numbered(++runs);
        await until("the stream has it", () => seen.length === runs);
        throw new Error("sensor is unplugged");
      },
    });
    const seen: number[] = [];
    const follow = async () => {
      for await (const response of clientOf(plugin).listAndWatchReportContent({}))
        seen.push(numberIn(response));
    };
    await plugin.ready;
    await expect(follow()).rejects.toThrow("INTERNAL: sensor is unplugged");
    await expect(clientOf(plugin).getReportContent({})).rejects.toThrow("INTERNAL: sensor is unplugged");
    const again = expect(follow()).rejects.toThrow("INTERNAL: sensor is unplugged");
    await until("it runs again", () => seen.length === 2, { clock });
    await again;
    expect(seen).toEqual([1, 2]);
  });

  it("a report that throws is restarted with growing delays, whether it had a value or not", async () => {
    const clock = new FakeClock();
    const starts: number[] = [];
    serve({
      clock,
      log: silentLogger,
      report: async function* () {
        starts.push(clock.monotonic());
        if (starts.length % 2 === 0) yield numbered(1);
        throw new Error("sensor is unplugged");
      },
    });
    await until("it was started six times", () => starts.length === 6, { clock, stepMs: 500 });
    const delays = starts.slice(1).map((at, index) => at - starts[index]!);
    for (const [index, delay] of delays.entries()) expect(delay).toBeGreaterThan(0.75 * 500 * 2 ** index);
  });

  it("a message of any length and characters reaches the agent, truncated", async () => {
    const plugin = serve({
      log: silentLogger,
      // biome-ignore lint/correctness/useYield: it fails at once
      report: async function* () {
        throw new Error(`${"\u00e9\u{1f525}".repeat(100)}${"x".repeat(199)}\u{1f525}${"y".repeat(100_000)}`);
      },
    });
    await plugin.ready;
    const answer: ClientError = await clientOf(plugin)
      .getReportContent({})
      .then(
        () => expect.unreachable(),
        (error) => error,
      );
    expect(answer.details).toMatch(/^(\u00e9\u{1f525}){100}x{199}\ufffd$/u);
  });

  it("stops though the report ignores the signal and streams are open", async () => {
    const plugin = serve({
      report: async function* () {
        yield numbered(1);
        await new Promise(() => {});
      },
    });
    await plugin.ready;
    const stream = clientOf(plugin).listAndWatchReportContent({})[Symbol.asyncIterator]();
    await stream.next();
    const ended = expect(stream.next()).rejects.toThrow("UNAVAILABLE");
    await plugin.stop();
    await ended;
  });

  it("is made of plain objects", () => {
    const content = customNodeResource(
      spec("nodeResourceProperties", [{ propertyName: "a" }]),
      status("resources", {}),
    );
    expect(content.groupVersionKind).toEqual({
      group: "node.katalyst.kubewharf.io",
      version: "v1alpha1",
      kind: "CustomNodeResource",
    });
    expect(
      content.field.map(({ fieldType, fieldName, value }) => [fieldType, fieldName, String(value)]),
    ).toEqual([
      [0, "nodeResourceProperties", '[{"propertyName":"a"}]'],
      [1, "resources", "{}"],
    ]);
    expect(() => spec("x", undefined as unknown as string)).toThrow("field x");
  });
});
