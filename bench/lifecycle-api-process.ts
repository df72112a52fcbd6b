// The agent's API over a log of events, for the benchmark, in a process of its own:
//   node lifecycle-api-process.ts SOCKET EVENTS
// A line on stdin with a number appends so many events; the answer is the longest that the event loop stood still
// since the line before, milliseconds.
import { monitorEventLoopDelay } from "node:perf_hooks";
import { createInterface } from "node:readline";
import { silentLogger, systemClock } from "@nodekeeper/core/lib";
import { EventLog } from "../packages/agent/src/lifecycle/event-log.ts";
import type { NewEvent } from "../packages/agent/src/lifecycle/events.ts";
import { LifecycleService, LocalApi, lifecycleDefinition } from "../packages/agent/src/server/index.ts";

const [path = "", count = "0"] = process.argv.slice(2);
const events = new EventLog({
  capacity: 100_000,
  clock: systemClock,
  snapshot: () => [],
  newId: () => "bench",
});
append(Number(count));

const statuses = {
  version: 0,
  uids: () => [],
  get: () => {
    throw new Error("no statuses here");
  },
  getNewerThan: () => Promise.reject(new Error("no statuses here")),
};
const lifecycle = {
  events,
  statuses,
  isKnown: true,
  listedSoon: () => Promise.resolve(),
  listedAt: undefined,
  problems: () => [],
};
const api = new LocalApi({
  path,
  clock: systemClock,
  log: silentLogger,
  addServices: (server, signal) =>
    server.add(
      lifecycleDefinition,
      new LifecycleService({ lifecycle, clock: systemClock, signal, onRefused: () => {} }),
    ),
});
void api.run(new AbortController().signal);
while (api.problem !== undefined) await systemClock.sleep(5);
console.log("0");

const delays = monitorEventLoopDelay({ resolution: 1 });
delays.enable();
for await (const line of createInterface({ input: process.stdin })) {
  console.log(String(delays.max / 1e6));
  delays.reset();
  append(Number(line));
}

function append(more: number): void {
  const added: NewEvent[] = [];
  for (let at = 0; at < more; at++) {
    const pod = at % 500;
    added.push({
      type: at % 2 === 0 ? "ContainerStarted" : "ContainerDied",
      pod: {
        uid: `0f3a2b1c-0000-4000-8000-${String(pod).padStart(12, "0")}`,
        namespace: "shop",
        name: `cart-${pod}`,
      },
      container: { id: String(at).padStart(64, "0"), name: "app", kind: "container" },
      exitCode: at % 2 === 0 ? undefined : 137,
      reason: at % 2 === 0 ? "" : "OOMKilled",
    });
  }
  events.append(added);
}
