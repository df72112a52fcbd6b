import { EventEmitter } from "node:events";
import { existsSync, type FSWatcher, mkdirSync, mkdtempSync, rmSync, type watch } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { type Clock, FakeClock, InotifyWatches, silentLogger } from "../lib/index.ts";
import { KeptServer } from "./kept-server.ts";

type OnEvent = Parameters<InotifyWatches["start"]>[1];

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
      if (ms === 10_000) lookAgain = callback;
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
    onServing: (isServing) => {
      if (!isServing) losses.push("lost");
    },
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

it("looks for its socket if the directory's events concern it, not if other files are written", async () => {
  let tell: OnEvent = () => {};
  let looks = 0;
  const watched = (_path: string, _options: unknown, onEvent: OnEvent) => {
    tell = onEvent;
    return Object.assign(new EventEmitter(), { close: () => void looks++ }) as unknown as FSWatcher;
  };
  const controller = new AbortController();
  const server = new KeptServer({
    path: join(directory, "api.sock"),
    addServices: () => {},
    clock: new FakeClock(),
    log: silentLogger,
    watches: new InotifyWatches(silentLogger, watched as unknown as typeof watch),
  });
  const running = server.run(controller.signal);
  await server.ready;
  tell("rename", ".state-0.rounds");
  tell("change", "api.sock");
  expect(looks).toBe(0);
  tell("rename", "api.sock");
  expect(looks).toBe(1);
  controller.abort();
  await running;
});

it("finds that its socket was removed before the directory was watched", async () => {
  const path = join(directory, "api.sock");
  const controller = new AbortController();
  const served: boolean[] = [];
  const server = new KeptServer({
    path,
    addServices: () => {},
    onServing: (isServing) => {
      served.push(isServing);
      if (served.length === 1) rmSync(path);
    },
    // Time does not pass: only the check after the start can find it.
    clock: new FakeClock(),
    log: silentLogger,
  });
  const running = server.run(controller.signal);
  await server.ready;
  await vi.waitFor(() => expect(served).toEqual([true, false, true]), { timeout: 30_000 });
  expect(existsSync(path)).toBe(true);
  controller.abort();
  await running;
});

it.each([
  ["every 2 s if its directory can't be watched", 2_000, undefined],
  ["every 10 s if its directory is watched, but has no event", 10_000, { close: () => {} }],
])("looks for its socket %s", async (_, intervalMs, watcher) => {
  const path = join(directory, "api.sock");
  const clock = new FakeClock();
  const after = vi.spyOn(clock, "after");
  const controller = new AbortController();
  let isLost = false;
  const server = new KeptServer({
    path,
    addServices: () => {},
    onServing: (isServing) => {
      isLost ||= !isServing;
    },
    clock,
    log: silentLogger,
    watches: { start: () => watcher } as unknown as InotifyWatches,
  });
  const running = server.run(controller.signal);
  await server.ready;
  await vi.waitFor(() => expect(clock.timers).toBe(1), { timeout: 30_000 });
  expect(after).toHaveBeenLastCalledWith(intervalMs, expect.any(Function));
  rmSync(path);
  await clock.step(intervalMs);
  await vi.waitFor(() => expect(isLost).toBe(true), { timeout: 30_000 });
  controller.abort();
  await running;
});
