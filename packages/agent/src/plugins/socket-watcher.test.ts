import { type Clock, FakeClock, InotifyWatches, Registry, silentLogger, stopped } from "@nodekeeper/core/lib";
import { eventually } from "@nodekeeper/testing/until";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { createPluginMetrics } from "./metrics.ts";
import { SocketWatcher } from "./socket-watcher.ts";
import { temporaryDirectory } from "./testing/setup.ts";

let directory: ReturnType<typeof temporaryDirectory>;
let stop: AbortController;
let running: Promise<void>;

beforeEach(() => {
  directory = temporaryDirectory();
  stop = new AbortController();
});
afterEach(async () => {
  stop.abort(stopped("test is over"));
  await running;
  directory.remove();
});

/** A watcher that always has reason to scan, and whose scans take this much time and CPU time. */
function watch({ wallMs, cpuMs }: { wallMs: number; cpuMs: number }) {
  const fake = new FakeClock();
  // Each reading is that much after the one before: one is taken before a scan and one after it.
  let wallReadings = 0;
  let cpuReadings = 0;
  let scans = 0;
  const clock: Clock = {
    now: () => fake.now(),
    monotonic: () => fake.monotonic() + wallReadings++ * wallMs,
    after: fake.after.bind(fake),
    sleep: fake.sleep.bind(fake),
  };
  const watcher = new SocketWatcher({
    settings: {
      directories: [directory.path],
      limits: { maxDepth: 1, maxDirectories: 1, maxEntries: 10, maxSockets: 10 },
      rescanInterval: 0,
    },
    clock,
    log: silentLogger,
    metrics: createPluginMetrics(new Registry()),
    watches: new InotifyWatches(silentLogger),
    cpuMs: () => cpuReadings++ * cpuMs,
  });
  running = (async () => {
    for await (const _ of watcher.scans(new Set(), stop.signal)) scans++;
  })();
  return { clock: fake, state: () => ({ scans, waiting: fake.timers }) };
}

describe("the gap between two scans", () => {
  it.each([
    ["a scan that costs little", { wallMs: 1, cpuMs: 0.1 }, 50],
    ["a scan that waited 8 s for a busy machine and costs little", { wallMs: 8_000, cpuMs: 0.1 }, 50],
    ["a scan that costs 10 ms", { wallMs: 10, cpuMs: 10 }, 100],
    ["a scan that costs 2 s", { wallMs: 2_000, cpuMs: 2_000 }, 500],
  ])("after %s (%o) is %i ms", async (_, scan, gapMs) => {
    const { clock, state } = watch(scan);
    await eventually(() => expect(state()).toEqual({ scans: 1, waiting: 1 }));
    await clock.step(gapMs - 1);
    expect(state()).toEqual({ scans: 1, waiting: 1 });
    await clock.step(1);
    await eventually(() => expect(state()).toEqual({ scans: 2, waiting: 1 }));
  });
});
