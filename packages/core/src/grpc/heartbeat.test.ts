import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { queryObjects } from "node:v8";
import { until } from "@nodekeeper/testing/until";
import { afterEach, beforeEach, expect, it } from "vitest";
import { type Clock, systemClock } from "../lib/index.ts";
import { watchHeartbeat } from "./heartbeat.ts";

let directory: string;
let path: string;
let seen: (string | undefined)[];
let stop: AbortController;
let watching: Promise<void>;
const processes: ReturnType<typeof spawn>[] = [];

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "nkhb-"));
  path = join(directory, "driver.sock");
  seen = [];
  stop = new AbortController();
});

afterEach(async () => {
  stop.abort();
  await watching;
  for (const child of processes.splice(0)) child.kill("SIGKILL");
  rmSync(directory, { recursive: true, force: true });
});

// Serves HTTP/2 in a separate process, which can be stopped.
async function serve(closeAfterMs = 1_000_000) {
  const script = `
    const server = require("node:http2").createServer();
    server.on("session", (session) => {
      console.log("session");
      setTimeout(() => session.close(), Number(process.argv[2]));
    });
    server.listen({ path: process.argv[1], backlog: 1 }, () => console.log("listening"));
  `;
  const child = spawn(process.execPath, ["-e", script, path, String(closeAfterMs)]);
  processes.push(child);
  let output = "";
  child.stdout.on("data", (bytes) => (output += bytes));
  await until("it listens", () => output.includes("listening"));
  return {
    kill: (signal: NodeJS.Signals) => child.kill(signal),
    sessions: () => output.split("session").length - 1,
  };
}

function watch(timeoutMs: number, clock: Clock = systemClock, intervalMs = 20): void {
  watching = watchHeartbeat(
    { path, onChange: (problem) => seen.push(problem), clock, intervalMs, timeoutMs },
    stop.signal,
  );
}

const isAnswering = () => seen.length > 0 && seen.at(-1) === undefined;

it("reports a process that is stopped, and that it answers again", async () => {
  const child = await serve();
  watch(1_000);
  await until("it answers", isAnswering);
  child.kill("SIGSTOP");
  await until("it does not", () => seen.includes("its process does not respond within 1000 ms"));
  child.kill("SIGCONT");
  await until("it does again", isAnswering);
});

it("reports a process that is killed, and the one that takes its place", async () => {
  const child = await serve();
  watch(600_000);
  await until("it answers", isAnswering);
  child.kill("SIGKILL");
  await until("it has exited", () => seen.includes("no process listens on its socket"));
  rmSync(path);
  await until("its socket is removed", () => seen.includes("its socket does not exist"));
  await serve();
  await until("the next one answers", isAnswering);
});

it("a server that closes connections now and then answers all the same", async () => {
  const server = await serve(30);
  watch(600_000);
  await until("five connections", () => server.sessions() >= 5);
  expect(seen).toEqual([undefined]);
});

it("keeps nothing of earlier questions while the connection stays", async () => {
  const server = await serve();
  let asked = 0;
  const clock: Clock = {
    ...systemClock,
    sleep: (ms, signal) => {
      asked += 1;
      return systemClock.sleep(ms, signal);
    },
  };
  watch(600_000, clock, 0);
  const count = async (most: number) => {
    await until(`it asked ${most} times`, () => asked >= most);
    return queryObjects(Promise, { format: "count" });
  };
  const before = await count(100);
  const after = await count(asked + 500);
  expect(server.sessions()).toBe(1);
  expect(after - before).toBeLessThan(250);
});

it("a stopped process whose backlog is full is reported", async () => {
  const child = await serve();
  child.kill("SIGSTOP");
  const waiting: Socket[] = [];
  try {
    await until("its backlog is full", async () => {
      const socket = connect(path);
      waiting.push(socket);
      return await new Promise<boolean>((resolve) => {
        socket.once("connect", () => resolve(false));
        socket.once("error", (error: NodeJS.ErrnoException) => resolve(error.code === "EAGAIN"));
      });
    });
    watch(600_000);
    const full = "its process does not accept connections, and the backlog of its socket is full";
    await until("it is reported", () => seen.includes(full));
    expect(seen).toEqual([full]);
  } finally {
    for (const socket of waiting) socket.destroy();
  }
});

it("an error that is no evidence about the process is not reported, and retried as any failed connection", async () => {
  // Longer than the path of a unix socket may be: EINVAL.
  path = join(directory, "s".repeat(200));
  const pauses: number[] = [];
  const clock: Clock = {
    ...systemClock,
    sleep: (ms, signal) => {
      pauses.push(ms);
      return systemClock.sleep(0, signal);
    },
  };
  watch(600_000, clock);
  await until("three attempts", () => pauses.length >= 3);
  expect(seen).toEqual([]);
  expect(new Set(pauses)).toEqual(new Set([500]));
});
