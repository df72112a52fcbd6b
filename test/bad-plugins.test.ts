import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { ServerError, Status } from "nice-grpc";
import { afterAll, beforeAll, expect, it } from "vitest";
import { type RunningAgent, startAgent, untilWidgets } from "./support/agent.ts";
import { startCluster, type TestCluster } from "./support/cluster.ts";
import { type Neighbour, startNeighbour } from "./support/neighbour.ts";
import { aborted, constantly, startBarePlugin, widgets } from "./support/plugins.ts";
import { until } from "./support/until.ts";

let cluster: TestCluster;
let agent: RunningAgent;
let neighbour: Neighbour;

beforeAll(async () => {
  cluster = await startCluster();
  agent = await startAgent(cluster);
  neighbour = await startNeighbour(cluster, agent.pluginDir);
});
afterAll(async () => {
  await neighbour.stop();
  await agent.stop();
  await cluster.stop();
});

const start = (name: string, service: Parameters<typeof startBarePlugin>[2]) =>
  startBarePlugin(agent.pluginDir, name, service);

// biome-ignore lint/correctness/useYield: a stream on which nothing ever comes
async function* silence(_: unknown, { signal }: { signal: AbortSignal }): AsyncGenerator<never> {
  await aborted(signal);
}

async function untilBlamed(name: string, error: RegExp): Promise<void> {
  const look = async () => error.test((await agent.plugin(name))?.error ?? "");
  await until(`${name} is named with ${error}`, look, { explain: () => agent.plugin(name) });
}

/** The sum of a counter over all its labels but the plugin. */
async function metric(name: string, plugin: string): Promise<number> {
  const line = new RegExp(`^${name}\\{[^}]*plugin="${plugin}"[^}]*\\} (\\S+)$`, "gm");
  return [...(await agent.metrics()).matchAll(line)].reduce((sum, [, value]) => sum + Number(value), 0);
}

it("one that never answers", async () => {
  const hung = await start("hung", {
    getReportContent: async (_, { signal }) => {
      await aborted(signal);
      return {};
    },
    listAndWatchReportContent: silence,
  });
  await untilBlamed("hung", /^GetReportContent: no answer within 500 ms$/);
  await neighbour.update();
  expect((await agent.ready()).status).toBe(200);
  await neighbour.update();
  hung.stop();
});

it("one that answers too late, until it answers in time", async () => {
  let latenessMs = 700;
  let answered = 0;
  const late = await start("late", {
    getReportContent: async () => {
      await sleep(latenessMs);
      answered++;
      return { content: [widgets("late", latenessMs)] };
    },
    listAndWatchReportContent: silence,
  });
  await untilBlamed("late", /^GetReportContent: no answer within 500 ms$/);
  await until("a late answer", () => answered > 0);
  await neighbour.update();
  expect(cluster.widgets("late")).toBeUndefined();
  latenessMs = 1;
  await untilWidgets(cluster, "late", 1);
  expect((await agent.plugin("late"))?.error).toBeUndefined();
  late.stop();
});

it("one whose stream breaks again and again", async () => {
  let streams = 0;
  const broken = await start("broken", {
    getReportContent: async () => {
      throw new ServerError(Status.INTERNAL, "sensor is on fire");
    },
    async *listAndWatchReportContent() {
      yield { content: [widgets("broken", ++streams)] };
      throw new ServerError(Status.INTERNAL, "and the stream burns");
    },
  });
  await untilWidgets(cluster, "broken", 1);
  await untilBlamed(
    "broken",
    /^GetReportContent: sensor is on fire; ListAndWatchReportContent: and the stream burns$/,
  );
  await neighbour.update();
  await untilWidgets(cluster, "broken", 2);
  await neighbour.update();
  broken.stop();
});

it("one that dies mid-stream keeps its content, and comes back with new", async () => {
  const first = await start("mortal", constantly(widgets("mortal", 1)));
  await untilWidgets(cluster, "mortal", 1);
  first.stop();
  await untilBlamed("mortal", /./);
  await neighbour.update();
  expect(cluster.widgets("mortal")).toBe("1");
  const second = await start("mortal", constantly(widgets("mortal", 2)));
  await untilWidgets(cluster, "mortal", 2);
  expect((await agent.plugin("mortal"))?.state).toBe("registered");
  second.stop();
});

it("one that sends 10,000 messages a second is held back, and its last value arrives", async () => {
  let sent = 0;
  const flooding = new AbortController();
  const flood = await start("flood", {
    getReportContent: async () => ({ content: [widgets("flood", sent)] }),
    async *listAndWatchReportContent(_, { signal }) {
      const over = AbortSignal.any([flooding.signal, signal]);
      while (!over.aborted) {
        for (let n = 0; n < 100 && !over.aborted; n++) yield { content: [widgets("flood", ++sent)] };
        await sleep(10);
      }
      yield { content: [widgets("flood", sent)] };
      await aborted(signal);
    },
  });
  await until(
    "it is held back",
    async () => (await metric("nodekeeper_reporting_throttled_total", "flood")) >= 3,
  );
  const writesBefore = cluster.writes("customnoderesources").length;
  const messagesBefore = await metric("nodekeeper_reporting_messages_total", "flood");
  const began = performance.now();
  await neighbour.update();
  await neighbour.update();
  await neighbour.update();
  await until(
    "another throttling",
    async () => (await metric("nodekeeper_reporting_throttled_total", "flood")) >= 6,
  );
  const seconds = (performance.now() - began) / 1000;
  // Its share is 200 messages in 100 ms; the first of a window may come on top.
  const messages = (await metric("nodekeeper_reporting_messages_total", "flood")) - messagesBefore;
  expect(messages).toBeLessThan(2_000 * (seconds + 0.5));
  // minWriteInterval is 50 ms.
  const writes = cluster.writes("customnoderesources").length - writesBefore;
  expect(writes).toBeLessThanOrEqual(20 * seconds + 2);
  flooding.abort();
  await until("its last value", () => cluster.widgets("flood") === String(sent), {
    explain: () => ({ sent, published: cluster.widgets("flood") }),
  });
  flood.stop();
});

it("one that sends 64 MiB in a message is refused before it fills the memory", async () => {
  const script = join(import.meta.dirname, "support", "huge-plugin.ts");
  const before = memory();
  const child = spawn(process.execPath, [script, agent.pluginDir, "huge", "64"], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  try {
    await once(child.stdout, "data");
    let most = 0;
    const watching = setInterval(() => {
      most = Math.max(most, memory());
    }, 5);
    await untilBlamed("huge", /RESOURCE_EXHAUSTED|larger than max|exceeds/i);
    await neighbour.update();
    const failures = () => metric("nodekeeper_reporting_call_failures_total", "huge");
    await until("more tries", async () => (await failures()) >= 3, { explain: agent.metrics });
    await neighbour.update();
    clearInterval(watching);
    expect(await agent.plugin("huge")).toMatchObject({ contentBytes: 0 });
    expect(most - before).toBeLessThan(24 * 2 ** 20);
  } finally {
    child.kill("SIGKILL");
    await once(child, "exit");
  }
});

// What lies outside V8's heap, where received bytes are.
function memory(): number {
  const { external, arrayBuffers } = process.memoryUsage();
  return Math.max(external, arrayBuffers);
}
