// Runs a simulated container runtime as a separate process, for benchmarks and experiments:
//   node packages/testing/src/runtime/main.ts --socket /tmp/cri.sock --pods 100 --containers 3
// Reads commands as lines of JSON from stdin (see commands.ts) and prints a response with the line number for each.
// Stops at the end of stdin and on SIGINT or SIGTERM. Prints each event as a line with two times in milliseconds: `at`,
// since the epoch, and `monotonic`, of the machine's monotonic clock, which all processes share.
import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { parseArgs } from "node:util";
import { messageOf, stopped, systemClock, untilAborted } from "@nodekeeper/core/lib";
import { Churn } from "./churn.ts";
import { runCommand } from "./commands.ts";
import { SimulatedCri } from "./cri-server.ts";
import type { EventMode } from "./event-stream.ts";
import { faultsOf } from "./fault-rules.ts";
import { ScenarioPlayer } from "./scenario-player.ts";
import { everyday, quiet, type Scenario } from "./scenarios.ts";
import { SimulatedRuntime } from "./simulated-runtime.ts";

const usage = `usage: main.ts --socket PATH
  --pods N            pods that only commands change (default 0)
  --containers N      of each of them (default 1)
  --status-delay MS   how long every status call takes (default 0)
  --events MODE       on, unimplemented or disabled (default on)
  --stream-lists      lists can be streamed
  --dual-stack        pods have an IPv6 address too
  --scenario NAME     everyday, quiet or a file with a JSON array of scenarios (default: none)
  --pace N            how much faster the scenario goes (default 1)
  --seed N            of the scenario (default 1)
  --rate N            restarts of containers a second, forever (default 0)
  --no-print-events   print no events`;

const statusCalls = ["ContainerStatus", "PodSandboxStatus"];
const eventNames = ["created", "started", "stopped", "deleted"];

try {
  process.exitCode = await main();
} catch (error) {
  process.stderr.write(`${messageOf(error)}\n`);
  process.exitCode = 1;
}

async function main(): Promise<number> {
  const { values } = parseArgs({
    allowNegative: true,
    options: {
      socket: { type: "string" },
      pods: { type: "string", default: "0" },
      containers: { type: "string", default: "1" },
      "status-delay": { type: "string", default: "0" },
      events: { type: "string", default: "on" },
      "stream-lists": { type: "boolean", default: false },
      "dual-stack": { type: "boolean", default: false },
      scenario: { type: "string" },
      pace: { type: "string", default: "1" },
      seed: { type: "string", default: "1" },
      rate: { type: "string", default: "0" },
      "print-events": { type: "boolean", default: true },
    },
  });
  const numbers = [
    values.pods,
    values.containers,
    values["status-delay"],
    values.pace,
    values.seed,
    values.rate,
  ];
  const isRight =
    numbers.every((text) => Number(text) >= 0) &&
    Number(values.pace) > 0 &&
    ["on", "unimplemented", "disabled"].includes(values.events);
  if (!values.socket || !isRight) {
    process.stderr.write(`${usage}\n`);
    return 2;
  }
  const clock = systemClock;
  const runtime = new SimulatedRuntime({ clock, isDualStack: values["dual-stack"] });
  const churn = new Churn(runtime, clock);
  churn.deploy(Number(values.pods), Number(values.containers));
  // Subscribed before the server, so that an event's time is taken before it is sent.
  if (values["print-events"]) {
    runtime.subscribe(({ id, type, pod }) =>
      print({ event: eventNames[type], id, podUid: pod.uid, ...times() }),
    );
  }
  const delayMs = Number(values["status-delay"]);
  const cri = new SimulatedCri({
    runtime,
    clock,
    socket: values.socket,
    events: values.events as EventMode,
    streamsLists: values["stream-lists"],
    faults: faultsOf(delayMs > 0 ? statusCalls.map((method) => ({ method, delayMs })) : []),
  });
  const scenarios = scenariosNamed(values.scenario);
  const player = new ScenarioPlayer({
    runtime,
    clock,
    scenarios,
    seed: Number(values.seed),
    pace: Number(values.pace),
  });

  const stopping = new AbortController();
  const stop = () => stopping.abort(stopped("asked to stop"));
  process.once("SIGINT", stop).once("SIGTERM", stop);
  const { signal } = stopping;
  await cri.start();
  print({
    ready: true,
    socket: cri.socket,
    pods: runtime.sandboxes.size,
    containers: runtime.containers.size,
  });

  const input = createInterface({ input: process.stdin });
  input.once("close", stop);
  signal.addEventListener("abort", () => input.close(), { once: true });
  let line = 0;
  input.on("line", (text) => {
    const number = ++line;
    runCommand(text, { cri, churn, player, clock }, signal).then(
      () => print({ line: number, ...times() }),
      (error) => print({ line: number, error: messageOf(error) }),
    );
  });
  const rate = Number(values.rate);
  const works = [player.run(signal), untilAborted(signal)];
  if (rate > 0) works.push(churn.play(rate, Number.POSITIVE_INFINITY, signal));
  try {
    await Promise.all(works);
  } catch (error) {
    if (!signal.aborted) throw error;
  } finally {
    stop();
    await cri.stop();
  }
  return 0;
}

function scenariosNamed(name: string | undefined): readonly Scenario[] {
  if (name === undefined) return [];
  if (name === "everyday") return everyday;
  if (name === "quiet") return quiet;
  return JSON.parse(readFileSync(name, "utf8")) as Scenario[];
}

function times(): { at: number; monotonic: number } {
  const at = performance.timeOrigin + performance.now();
  return { at, monotonic: Number(process.hrtime.bigint()) / 1e6 };
}

function print(value: unknown): void {
  process.stdout.write(`${JSON.stringify(value)}\n`);
}
