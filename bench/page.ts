import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { createInterface, type Interface } from "node:readline";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { ContainerEventType } from "@nodekeeper/core/gen/runtime/v1/api.ts";
import { silentLogger, systemClock } from "@nodekeeper/core/lib";
import { createDevApiServer } from "@nodekeeper/testing";
import { buildPage, viewFiles } from "../scripts/page-bundle.ts";
import { EventStreamClient } from "../test/support/event-stream.ts";
import { AgentProcess } from "./agent-process.ts";
import { deviceGridFigures } from "./device-grid.ts";
import { type Figure, percentile } from "./figures.ts";
import { RuntimeProcess } from "./runtime-client.ts";
import type { Emitted } from "./runtime-process.ts";

const PODS = 110;
const CONTAINERS = 2;
const EVENTS_PER_SECOND = 5;
/** Browsers that opened the stream and read nothing; two more streams than these may be open at once. */
const DEAD_BROWSERS = 12;

/** When the page painted first, in fresh profiles: milliseconds from the start of the navigation. */
export interface FirstPaints {
  paintsMs: number[];
}

/** What the open page drew, by the browser's clock, milliseconds. */
export interface DrawnFrames {
  seconds: number;
  framesAt: number[];
  /** Tasks of 50 ms and more. */
  longTasksMs: number[];
}

/**
 * The page in Chromium beside 110 pods and 5 lifecycle events a second: what a user waits for, what the page costs the agent,
 * and what browsers that do not read cost others. Needs Chromium (npm run test:page installs it) and the built agent.
 */
export async function benchPage(quick: boolean): Promise<Figure[]> {
  const seconds = quick ? 20 : 60;
  const server = createDevApiServer({ clock: systemClock, log: silentLogger, checkFields: false });
  await server.start();
  server.seedNode("bench");
  const runtime = await new RuntimeProcess(PODS, CONTAINERS, "on").ready();
  const agent = new AgentProcess();
  await server.writeKubeconfig(agent.kubeconfig);
  try {
    await agent.start({ lifecycle: "true", "runtime-endpoint": runtime.socket });
    await systemClock.sleep(10_000);
    // What the first events and streams cost.
    await underLoad(agent, runtime, 10);
    const without = await underLoad(agent, runtime, seconds);
    const dead = deadBrowsers(agent.port);
    const beside = await underLoad(agent, runtime, seconds);
    for (const socket of dead) socket.destroy();
    const rss = agent.rssMb();
    const browser = new BrowserProcess(agent.port, quick ? 3 : 9);
    try {
      const { paintsMs } = await browser.answer<FirstPaints>();
      const withPage = await underLoad(agent, runtime, seconds);
      const drawn = await browser.finish();
      return [
        ...(await sizes()),
        { name: "first contentful paint, median", value: percentile(paintsMs, 0.5), unit: "ms", budget: 300 },
        { name: "first contentful paint, slowest", value: Math.max(...paintsMs), unit: "ms" },
        ...frameFigures(drawn),
        { name: "agent's CPU, no page", value: without.cpuPercent, unit: "% of one" },
        { name: "agent's CPU, one open page", value: withPage.cpuPercent, unit: "% of one" },
        {
          name: "agent's CPU of one open page",
          value: Math.max(withPage.cpuPercent - without.cpuPercent, 0),
          unit: "% of one",
          budget: 2,
        },
        { name: "agent's RSS with one open page, growth", value: agent.rssMb() - rss, unit: "MB" },
        ...delays("alone", without),
        ...delays(`beside ${DEAD_BROWSERS} dead browsers`, beside),
        ...(await deviceGridFigures(agent, quick)),
      ];
    } finally {
      browser.stop();
    }
  } finally {
    await agent.remove();
    runtime.stop();
    await server.stop();
  }
}

/** What the browser has to load, as compressed by gzip. */
async function sizes(): Promise<Figure[]> {
  const directory = mkdtempSync(join(tmpdir(), "nkbench-"));
  const { outputs } = await buildPage(directory);
  const kb = (names: readonly string[]) =>
    names.reduce(
      (sum, name) => sum + gzipSync(readFileSync(join(directory, basename(name))), { level: 9 }).length,
      0,
    ) / 1_000;
  const figures = [
    {
      name: "timeline and all that it loads, gzip",
      value: kb(viewFiles(outputs, "timeline")),
      unit: "KB",
      budget: 62,
    },
    { name: "all files of the page, gzip", value: kb(readdirSync(directory)), unit: "KB" },
  ];
  rmSync(directory, { recursive: true });
  return figures;
}

function frameFigures({ seconds, framesAt, longTasksMs }: DrawnFrames): Figure[] {
  const gaps = framesAt.slice(1).map((at, index) => at - framesAt[index]!);
  return [
    { name: "frames per second", value: framesAt.length / seconds, unit: "" },
    { name: "between two frames, p99", value: percentile(gaps, 0.99), unit: "ms" },
    { name: "long tasks per minute", value: (longTasksMs.length * 60) / seconds, unit: "" },
    { name: "longest task", value: Math.max(0, ...longTasksMs), unit: "ms" },
  ];
}

interface Load {
  /** The agent's, of one core. */
  cpuPercent: number;
  /** From what happened in the runtime to the message that a client of the stream received, milliseconds. */
  delaysMs: number[];
  lost: number;
  /** Of /livez, milliseconds. */
  healthMs: number[];
}

/** Events of the runtime for some seconds, one client that reads the stream, and one that asks for health. */
async function underLoad(agent: AgentProcess, runtime: RuntimeProcess, seconds: number): Promise<Load> {
  const origin = `http://127.0.0.1:${agent.port}`;
  // Those that exited under the load before run again.
  await runtime.ask({ op: "restart", pods: PODS });
  await systemClock.sleep(3_000);
  const stream = await EventStreamClient.open(`${origin}/api/v1/stream?topics=events`);
  const healthMs: number[] = [];
  let isOver = false;
  const asking = (async () => {
    while (!isOver) {
      const at = performance.now();
      await (await fetch(`${origin}/livez`)).text();
      healthMs.push(performance.now() - at);
      await systemClock.sleep(100);
    }
  })();
  const before = agent.cpuSeconds();
  const command = { op: "rate", perSecond: EVENTS_PER_SECOND, seconds } as const;
  const { emitted } = await runtime.ask<{ emitted: Emitted[] }>(command);
  const cpuPercent = ((agent.cpuSeconds() - before) / seconds) * 100;
  await systemClock.sleep(2_000);
  isOver = true;
  await asking;
  await stream.close();
  const received = new Map(
    stream.of("events").flatMap(({ data, at }) => {
      const { type, container } = data.event;
      return type === "ContainerDied" && container ? [[container.id as string, at]] : [];
    }),
  );
  const deaths = emitted.filter(({ type }) => type === ContainerEventType.CONTAINER_STOPPED_EVENT);
  const delaysMs = deaths.flatMap(({ id, at }) => (received.has(id) ? [received.get(id)! - at] : []));
  return { cpuPercent, delaysMs, lost: deaths.length - delaysMs.length, healthMs };
}

function delays(name: string, { delaysMs, lost, healthMs }: Load): Figure[] {
  return [
    { name: `event to client, p50: ${name}`, value: percentile(delaysMs, 0.5), unit: "ms" },
    { name: `event to client, p99: ${name}`, value: percentile(delaysMs, 0.99), unit: "ms" },
    { name: `events lost: ${name}`, value: lost, unit: "", budget: 0 },
    { name: `/livez, p99: ${name}`, value: percentile(healthMs, 0.99), unit: "ms" },
  ];
}

function deadBrowsers(port: number): Socket[] {
  return Array.from({ length: DEAD_BROWSERS }, () => {
    const socket = connect(port, "127.0.0.1").on("error", () => {});
    socket.write(`GET /api/v1/stream HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\n\r\n`);
    return socket.pause();
  });
}

/** The other end of bench/page-browser.ts. */
class BrowserProcess {
  readonly #child: ChildProcess;
  readonly #reader: Interface;
  readonly #lines: AsyncIterator<string>;

  constructor(port: number, times: number) {
    const script = fileURLToPath(new URL("./page-browser.ts", import.meta.url));
    const args = [script, `http://127.0.0.1:${port}`, String(times)];
    this.#child = spawn(process.execPath, args, { stdio: ["pipe", "pipe", "inherit"] });
    this.#reader = createInterface({ input: this.#child.stdout! });
    this.#lines = this.#reader[Symbol.asyncIterator]();
  }

  async answer<T>(): Promise<T> {
    const { value, done } = await this.#lines.next();
    if (done) throw new Error("the browser's process ended");
    return JSON.parse(value);
  }

  async finish(): Promise<DrawnFrames> {
    this.#child.stdin!.write("\n");
    return await this.answer();
  }

  stop(): void {
    this.#reader.close();
    this.#child.kill();
  }
}
