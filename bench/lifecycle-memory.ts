// Runs lifecycle until its log has so many events, then prints what the process holds:
// node --expose-gc bench/lifecycle-memory.ts SOCKET EVENTS
import { keepProcessSmall } from "../src/cli/memory.ts";

// Before anything else is loaded, as the agent does.
keepProcessSmall();
const { systemClock } = await import("../src/lib/index.ts");
const { startLifecycle } = await import("./lifecycle-part.ts");

const [socket = "", events = "0"] = process.argv.slice(2);
const part = startLifecycle(socket, { relistPeriodMs: 100 });
await part.relists(20);
await part.until(() => part.lifecycle.events.length >= Number(events), 300_000);
for (let round = 0; round < 5; round++) {
  globalThis.gc?.();
  await systemClock.sleep(200);
}
const { rss, heapUsed } = process.memoryUsage();
process.stdout.write(`${JSON.stringify({ rss: rss / 1e6, heap: heapUsed / 1e6 })}\n`);
await part.stop();
