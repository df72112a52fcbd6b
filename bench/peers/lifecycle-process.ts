// The lifecycle module as a process of its own, with the commands of bench/peers/relist:
// node bench/peers/lifecycle-process.ts SOCKET PERIOD_MS
import { createInterface } from "node:readline";
import { systemClock } from "@nodekeeper/core/lib";
import {
  keepProcessSmall,
  keepStartSmall,
  returnMemoryOfStart,
} from "../../packages/agent/src/cli/memory.ts";
import { startLifecycle } from "../lifecycle-part.ts";

keepStartSmall();
const [socket = "", period = "1000"] = process.argv.slice(2);
const before = process.cpuUsage();
const startedAt = performance.now();
const part = startLifecycle(socket, { relistPeriod: Number(period) });
// The first list is processed when the second has come.
await part.relists(2);
answer({
  cpuMs: cpuMs(before),
  ms: performance.now() - startedAt - Number(period),
  events: part.lifecycle.events.last,
});
// As the agent does after its start.
keepProcessSmall();
returnMemoryOfStart();
for await (const line of createInterface({ input: process.stdin })) {
  const [op, count] = line.split(" ");
  if (op === "relists") await relists(Number(count));
  else if (op === "events") await events(Number(count));
  else throw new Error(`command ${JSON.stringify(line)} is unknown`);
}
process.exit(0);

async function relists(count: number): Promise<void> {
  await part.relists(1);
  const from = process.cpuUsage();
  await part.relists(count);
  answer({ cpuMs: cpuMs(from) / count });
}

async function events(count: number): Promise<void> {
  const from = part.lifecycle.events.last;
  let listedAt = part.listedAt();
  while (part.lifecycle.events.last < count) {
    // A later list may come while the statuses are read.
    if (part.lifecycle.events.last === from) listedAt = part.listedAt();
    await systemClock.sleep(5);
  }
  answer({ ms: part.lastEventAt() - listedAt, events: part.lifecycle.events.last });
}

function cpuMs(since: NodeJS.CpuUsage): number {
  const { user, system } = process.cpuUsage(since);
  return (user + system) / 1_000;
}

function answer(values: Record<string, number>): void {
  console.log(JSON.stringify(values));
}
