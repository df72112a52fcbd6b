// A simulated container runtime as a process of its own. Commands come as lines of JSON on stdin, each is answered by
// one line: node bench/runtime-process.ts SOCKET PODS CONTAINERS_PER_POD on|unimplemented
import { createInterface } from "node:readline";
import type { ContainerEventType } from "@nodekeeper/core/gen/runtime/v1/api.ts";
import { systemClock } from "@nodekeeper/core/lib";
import { type EventMode, SimulatedCri, SimulatedRuntime } from "@nodekeeper/testing";

/** What a benchmark asks for. */
export type RuntimeCommand =
  /** Every status call takes so long, milliseconds. */
  | { op: "statusDelay"; ms: number }
  /** One container in each of so many pods exits, is removed, and another is started. */
  | { op: "restart"; pods: number }
  /** So many containers a second exit or start; answers when each did, by id and type. */
  | { op: "rate"; perSecond: number; seconds: number };

/** What the runtime emitted, and when, milliseconds since the epoch with fractions. */
export interface Emitted {
  id: string;
  type: ContainerEventType;
  at: number;
}

const [socket = "", pods = "500", perPod = "3", events = "on"] = process.argv.slice(2);
let emitted: Emitted[] | undefined;
const runtime = new SimulatedRuntime({
  clock: systemClock,
  onEvent: ({ id, type }) => emitted?.push({ id, type, at: performance.timeOrigin + performance.now() }),
});
const running: string[][] = [];
for (let pod = 0; pod < Number(pods); pod++) {
  const sandbox = runtime.runSandbox({
    uid: `0b1e${String(pod).padStart(8, "0")}-5d1c`,
    name: `web-${pod}`,
    namespace: "shop",
  });
  running.push(
    Array.from({ length: Number(perPod) }, (_, at) => runtime.runContainer(sandbox, { name: `app-${at}` })),
  );
}
let statusDelay = 0;
const cri = new SimulatedCri({
  runtime,
  socket,
  clock: systemClock,
  events: events as EventMode,
  // One whose events reach every subscriber.
  name: "containerd",
  version: "v2.1.4",
  faults: ({ method }) =>
    statusDelay > 0 && (method === "ContainerStatus" || method === "PodSandboxStatus")
      ? { delayMs: statusDelay }
      : undefined,
});
await cri.start();
print({ ready: true });

for await (const line of createInterface({ input: process.stdin }))
  print(await run(JSON.parse(line) as RuntimeCommand));
await cri.stop();
process.exit(0);

async function run(command: RuntimeCommand): Promise<unknown> {
  switch (command.op) {
    case "statusDelay":
      statusDelay = command.ms;
      return { at: performance.timeOrigin + performance.now() };
    case "restart":
      for (let pod = 0; pod < command.pods; pod++) restart(pod % running.length);
      return { at: performance.timeOrigin + performance.now() };
    case "rate":
      return await atRate(command.perSecond, command.seconds);
  }
}

function restart(pod: number): void {
  const containers = running[pod]!;
  const id = containers.shift()!;
  const { sandboxId, name, attempt } = runtime.containers.get(id)!;
  runtime.exit(id, 1);
  runtime.removeContainer(id);
  containers.push(runtime.runContainer(sandboxId, { name, attempt: attempt + 1 }));
}

// Pod after pod a container exits; the next time its turn comes another is started in its place.
async function atRate(perSecond: number, seconds: number): Promise<unknown> {
  emitted = [];
  const dead = new Map<number, string>();
  const startedAt = performance.now();
  for (let done = 0; done < perSecond * seconds; done++) {
    const due = startedAt + (done * 1000) / perSecond;
    if (due > performance.now()) await systemClock.sleep(due - performance.now());
    const pod = done % running.length;
    const id = dead.get(pod);
    if (id === undefined) {
      const exiting = running[pod]![0]!;
      runtime.exit(exiting, 1);
      dead.set(pod, exiting);
    } else {
      const { sandboxId, name, attempt } = runtime.containers.get(id)!;
      dead.delete(pod);
      running[pod]![0] = runtime.runContainer(sandboxId, { name, attempt: attempt + 1 });
      runtime.removeContainer(id);
    }
  }
  const taken = emitted;
  emitted = undefined;
  return { emitted: taken };
}

function print(value: unknown): void {
  process.stdout.write(`${JSON.stringify(value)}\n`);
}
