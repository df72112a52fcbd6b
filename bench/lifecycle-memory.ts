// Prints what a process holds that lists pods, or knows them and has a log of so many events:
// node --expose-gc bench/lifecycle-memory.ts SOCKET list|EVENTS LISTS
import { keepProcessSmall } from "../packages/agent/src/cli/memory.ts";

// Before anything else is loaded, as the agent does.
keepProcessSmall();
const { Registry, silentLogger, systemClock } = await import("@nodekeeper/core/lib");
const { CriRuntime } = await import("../packages/agent/src/runtime/index.ts");
const { startLifecycle } = await import("./lifecycle-part.ts");

const PERIOD_MS = 100;
const [socket = "", what = "list", lists = "150"] = process.argv.slice(2);
const LISTS = Number(lists);

if (what === "list") await listOnly();
else await fillLog(Number(what));
process.exit(0);

async function listOnly(): Promise<void> {
  const { signal } = new AbortController();
  const clock = systemClock;
  using runtime = new CriRuntime({ endpoint: socket, clock, log: silentLogger, registry: new Registry() });
  // Loaded and idle as in the other process, but for the pods.
  const idle = startLifecycle("/nonexistent.sock", {});
  for (let round = 0; round < LISTS; round++) {
    await runtime.listPods(signal);
    await systemClock.sleep(PERIOD_MS);
  }
  await print();
  await idle.stop();
}

async function fillLog(events: number): Promise<void> {
  const part = startLifecycle(socket, { relistPeriod: PERIOD_MS });
  await part.until(() => part.lifecycle.events.length >= events, 300_000);
  await part.relists(LISTS / 2);
  // What is held, not what is under way.
  await part.stop();
  await print();
  if (part.lifecycle.events.length < events) throw new Error("the log was not kept");
}

async function print(): Promise<void> {
  for (let round = 0; round < 3; round++) {
    globalThis.gc?.();
    await systemClock.sleep(200);
  }
  const { rss, heapUsed } = process.memoryUsage();
  process.stdout.write(`${JSON.stringify({ rss: rss / 1e6, heap: heapUsed / 1e6 })}\n`);
}
