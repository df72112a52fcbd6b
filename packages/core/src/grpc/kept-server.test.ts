import { existsSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { type Clock, FakeClock, silentLogger } from "../lib/index.ts";
import { KeptServer } from "./kept-server.ts";

let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "nk-kept-"));
});
afterEach(() => rmSync(directory, { recursive: true, force: true }));

it("a server that is stopped while it looks for its socket does not serve a removed one again", async () => {
  const fake = new FakeClock();
  let lookAgain: (() => void) | undefined;
  const clock: Clock = {
    now: () => fake.now(),
    monotonic: () => fake.monotonic(),
    sleep: (ms, signal) => fake.sleep(ms, signal),
    after(ms, callback) {
      if (ms === 7_000) lookAgain = callback;
      return fake.after(ms, callback);
    },
  };
  const losses: string[] = [];
  const path = join(directory, "own", "api.sock");
  mkdirSync(join(directory, "own"));
  const controller = new AbortController();
  const server = new KeptServer({
    path,
    addServices: () => {},
    onLost: () => losses.push("lost"),
    checkIntervalMs: 7_000,
    clock,
    log: silentLogger,
  });
  const running = server.run(controller.signal);
  await server.ready;
  expect(lookAgain).toBeDefined();
  // The socket is removed and the server is stopped while it checks the socket.
  rmSync(join(directory, "own"), { recursive: true });
  lookAgain!();
  for (let turn = 0; turn < 10; turn++) await Promise.resolve();
  controller.abort();
  await running;
  expect(losses).toEqual([]);
  expect(existsSync(path)).toBe(false);
});
