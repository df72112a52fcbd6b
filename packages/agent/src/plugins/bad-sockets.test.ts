import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, renameSync, symlinkSync, unlinkSync, writeFileSync } from "node:fs";
import { createServer, type Server, type Socket } from "node:net";
import { join } from "node:path";
import { FakeClock } from "@nodekeeper/core/lib";
import { until } from "@nodekeeper/testing/until";
import { afterEach, expect, it } from "vitest";
import { temporaryDirectory, useTestPlugins } from "./testing/setup.ts";

const { at, serve, start } = useTestPlugins();
const listeners: { server: Server; sockets: Set<Socket> }[] = [];
const children: ChildProcess[] = [];

/** A unix socket that calls `onConnection` and serves no gRPC. */
async function listen(path: string, onConnection: (socket: Socket) => void): Promise<void> {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on("error", () => {});
    onConnection(socket);
  });
  server.listen(path);
  await once(server, "listening");
  listeners.push({ server, sockets });
}

afterEach(() => {
  for (const child of children.splice(0)) child.kill("SIGKILL");
  for (const { server, sockets } of listeners.splice(0)) {
    for (const socket of sockets) socket.destroy();
    server.close();
  }
});

it("forty sockets that accept and send nothing do not keep a later plugin from its registration", async () => {
  for (let n = 0; n < 40; n++) await listen(at(`hung-${n}`), () => {});
  const { handler, at: statusAt } = start({ dialTimeout: 300, maxHandshakes: 16 });
  await until("hung ones are tried", () => (statusAt(at("hung-0"))?.attempts ?? 0) > 0);
  await serve(at("good"), { name: "good" });
  await until("good", () => handler.serving.has("good"));
  await until("failed", () => statusAt(at("hung-0"))?.reason?.includes("no response within 300 ms"));
});

it("sockets that have failed wait behind those that were never tried", async () => {
  const clock = new FakeClock();
  for (let silent = 0; silent < 60; silent++) await listen(at(`silent-${silent}`), () => {});
  const { handler } = start({ clock, maxHandshakes: 4, dialTimeout: 600_000 });
  const startedAt = clock.monotonic();
  await until("all silent ones have failed once", () => clock.monotonic() - startedAt > 60_000, {
    clock,
    stepMs: 500,
  });
  await serve(at("newcomer"), { name: "newcomer" });
  const placedAt = clock.monotonic();
  await until("registered", () => handler.serving.has("newcomer"), { clock });
  // Far less than the deadline that a silent one has.
  expect(clock.monotonic() - placedAt).toBeLessThan(120_000);
});

it("a hung handshake ends at its deadline and is tried again with backoff, on the agent's clock", async () => {
  const clock = new FakeClock();
  await listen(at("hung"), () => {});
  const { at: statusAt } = start({ clock });
  const status = () => statusAt(at("hung"));
  await until("first try", () => status()?.attempts === 1, { clock });
  const startedAt = clock.monotonic();
  await until("failed", () => status()?.state === "failed", { clock, stepMs: 500 });
  expect(clock.monotonic() - startedAt).toBeGreaterThanOrEqual(9_500);
  expect(status()?.reason).toBe("HTTP/2 connection: no response within 10000 ms");
  const tries: number[] = [];
  for (let attempt = 2; attempt <= 5; attempt++) {
    const failedAt = clock.monotonic();
    await until(`try ${attempt}`, () => status()?.attempts === attempt, { clock, stepMs: 100 });
    tries.push(clock.monotonic() - failedAt);
    await until("failed", () => status()?.state === "failed", { clock, stepMs: 500 });
  }
  for (const [n, waited] of tries.entries()) {
    expect(waited).toBeGreaterThanOrEqual(500 * 2 ** n * 0.8 - 600);
    expect(waited).toBeLessThanOrEqual(500 * 2 ** n * 1.2 + 600);
  }
  expect(tries.at(-1)).toBeGreaterThan(tries[0]!);
});

it("a plugin that never answers GetInfo is given up after the deadline", async () => {
  const { at: statusAt } = start({ infoTimeout: 200 });
  await serve(at("slow"), {}, () => new Promise(() => {}));
  await until("failed", () => statusAt(at("slow"))?.reason === "GetInfo: no response within 200 ms");
});

it("garbage and a connection that is closed at once are failures", async () => {
  await listen(at("garbage"), (socket) => socket.write("HTTP/1.1 200 OK\r\n\r\nhello"));
  await listen(at("closes"), (socket) => socket.destroy());
  await serve(at("good"), { name: "good" });
  const { handler, at: statusAt } = start({ dialTimeout: 500 });
  await until("good", () => handler.serving.has("good"));
  for (const name of ["garbage", "closes"]) {
    await until(name, () => statusAt(at(name))?.state === "failed");
  }
});

it("a huge answer is cut off", async () => {
  const { at: statusAt } = start();
  await serve(at("huge"), { name: "x".repeat(8 * 1024 * 1024) });
  const reason = await until(
    "failed",
    () => statusAt(at("huge"))?.state === "failed" && statusAt(at("huge"))?.reason,
  );
  expect(reason).toMatch(/^GetInfo: .*(larger|size|max)/i);
});

it("a plugin killed with SIGKILL is deregistered though its file stays, and registered when it is back", async () => {
  const { handler, at: statusAt, registry } = start();
  const child = await startChild(at("child.sock"));
  await until("registered", () => handler.serving.has("child"));
  child.kill("SIGKILL");
  await until("unavailable", () => statusAt(at("child.sock"))?.state === "unavailable");
  expect(existsSync(at("child.sock"))).toBe(true);
  expect(handler.calls).toEqual([
    "register child 1",
    "deregister child 1: no process listens on its registration socket",
  ]);
  expect(await registry.metrics()).toMatch(/deregistrations_total\{.*reason="no process listens/);
  unlinkSync(at("child.sock"));
  await startChild(at("child.sock"));
  await until("registered again", () => handler.serving.get("child")?.generation === 2);
});

it("a stale socket met at start is no plugin, and becomes one when a process listens", async () => {
  const child = await startChild(at("child.sock"));
  child.kill("SIGKILL");
  await once(child, "exit");
  const { handler, at: statusAt } = start();
  await until("unavailable", () => statusAt(at("child.sock"))?.reason === "no process listens on the socket");
  await serve(at(".new"), { name: "back" });
  renameSync(at(".new"), at("child.sock"));
  await until("registered", () => handler.serving.has("back"));
});

it("an endpoint apart from the registration socket counts too", async () => {
  const apart = temporaryDirectory();
  await listen(join(apart.path, "api"), () => {});
  const { handler, at: statusAt, registry } = start({ endpointDirectories: [apart.path] });
  await serve(at("reg.sock"), { name: "apart", endpoint: join(apart.path, "api") });
  await until("registered", () => handler.serving.has("apart"));
  unlinkSync(join(apart.path, "api"));
  await until("deregistered", () => handler.calls[1]);
  expect(handler.calls[1]).toBe("deregister apart 1: its endpoint does not exist");
  const probes = async () =>
    Number(/probe_failures_total\{result="missing"\} (\d+)/.exec(await registry.metrics())?.[1]);
  const before = await probes();
  await until("three more probes", async () => (await probes()) >= before + 3);
  expect(statusAt(at("reg.sock"))?.state).toBe("unavailable");
  expect(handler.calls).toHaveLength(2);
  await listen(join(apart.path, "api"), () => {});
  await until("registered again", () => handler.serving.has("apart"));
  apart.remove();
});

it("a path too long for the kernel is a clear failure", async () => {
  const elsewhere = temporaryDirectory();
  await serve(join(elsewhere.path, "s"), { name: "far" });
  const long = at("x".repeat(110));
  symlinkSync(join(elsewhere.path, "s"), long);
  const { at: statusAt } = start();
  await until("reason", () => statusAt(long)?.reason?.includes("the kernel allows at most 107"));
  elsewhere.remove();
});

it("5,000 files that are not sockets hide no socket", async () => {
  for (let n = 0; n < 5_000; n++) writeFileSync(at(`file-${n}`), "");
  const { handler } = start({ rescanInterval: 60_000 });
  await serve(at("good"), { name: "good" });
  await until("good", () => handler.serving.has("good"));
});

it("a flood of file events neither starves a plugin nor scans without end", async () => {
  const clock = new FakeClock();
  const { handler, registry } = start({ rescanInterval: 60_000, clock });
  const scans = async () =>
    Number(/scan_duration_seconds_count (\S+)/.exec(await registry.metrics())?.[1] ?? 0);
  await until("first scan", async () => (await scans()) === 1);
  for (let n = 0; n < 2_000; n++) {
    writeFileSync(at("flood"), "");
    unlinkSync(at("flood"));
    if (n % 100 === 0) await new Promise((resolve) => setImmediate(resolve));
  }
  expect(await scans()).toBe(1);
  await serve(at("good"), { name: "good" });
  await until("good", () => handler.serving.has("good"), { clock });
});

it("no more sockets than the limit are considered, and new ones displace none", async () => {
  const { handler } = start({ limits: { maxSockets: 2 } });
  await serve(at("y"), { name: "y" });
  await serve(at("z"), { name: "z" });
  await until("both", () => handler.serving.size === 2);
  const third = await serve(at("a"), { name: "a" });
  unlinkSync(at("y"));
  await until("a has y's place", () => third.notices.length === 1);
  expect([...handler.serving.keys()].sort()).toEqual(["a", "z"]);
});

it("a subdirectory full of sockets or directories leaves half of the places for others", async () => {
  const { handler } = start({ limits: { maxSockets: 4, maxDirectories: 7 } });
  for (let number = 0; number < 9; number++) {
    mkdirSync(at(`a/${number}`), { recursive: true });
    await serve(at(`a/${number}.sock`), { name: `a${number}` });
  }
  await until("half of them", () => handler.serving.size === 2);
  mkdirSync(at("z"));
  await serve(at("z/one.sock"), { name: "one" });
  await serve(at("two.sock"), { name: "two" });
  await until("the others", () => handler.serving.has("one") && handler.serving.has("two"));
  expect(handler.serving.size).toBe(4);
});

async function startChild(path: string): Promise<ChildProcess> {
  const support = join(import.meta.dirname, "testing", "setup.ts");
  const code = `import { servePlugin } from ${JSON.stringify(support)};
    await servePlugin(${JSON.stringify(path)}, { name: "child" });
    console.log("serving");`;
  const child = spawn(process.execPath, ["--input-type=module", "-e", code], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  children.push(child);
  await once(child.stdout!, "data");
  return child;
}
