import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { systemClock } from "@nodekeeper/core/lib";
import { until } from "@nodekeeper/testing/until";
import { afterEach, beforeEach, expect, it } from "vitest";
import { StateCopy } from "../packages/agent/src/state/index.ts";
import { agentFlags } from "./support/agent.ts";
import { startCluster, type TestCluster } from "./support/cluster.ts";
import { Collector } from "./support/collector.ts";
import {
  hardPressure,
  pick,
  startEvictionPlugin,
  type TestEvictionPlugin,
} from "./support/eviction-plugin.ts";
import { argumentsOf, type ScriptProcess, startScript } from "./support/processes.ts";

// The archive of an agent in a process of its own.

let cluster: TestCluster;
let collector: Collector;
let plugin: TestEvictionPlugin | undefined;
let agent: ScriptProcess;

beforeEach(async () => {
  cluster = await startCluster();
  collector = new Collector();
  await collector.start();
});
afterEach(async () => {
  agent.kill("SIGKILL");
  await agent.ended;
  await plugin?.stop();
  await collector.stop();
  await cluster.stop();
});

function start(more: Record<string, string> = {}, env: Record<string, string> = {}): void {
  const flags = { ...agentFlags(cluster), ...more };
  mkdirSync(flags.pluginDirectories!, { recursive: true });
  agent = startScript("packages/agent/src/main.ts", ["run", ...argumentsOf(flags)], env);
}

const explain = () => agent.output().slice(-4_000);
const ended = () => collector.distinct().filter(({ event }) => event === "nodekeeper.pod.ended");
const uidOf = ({ attributes }: { attributes: Record<string, unknown> }) => String(attributes["k8s.pod.uid"]);

it("has each record exactly once after deduplication, although the agent is killed again and again", async () => {
  const flags = {
    archiveEndpoint: collector.endpoint,
    archiveInterval: "100ms",
    archiveMaxBatchSize: "16Ki",
  };
  // The collector keeps what it gets, and its answers are lost or late; in every other life it takes nothing any more.
  let answers = 0;
  let isOverloaded = false;
  collector.answer = () => {
    answers++;
    if (isOverloaded) return { status: 503 };
    return answers % 3 === 0 ? { isCut: true } : { after: systemClock.sleep(answers % 5 === 0 ? 300 : 0) };
  };
  const expected = new Map<string, string>();
  for (let life = 0; life < 5; life++) {
    start(flags);
    const directory = agentFlags(cluster).pluginDirectories!;
    plugin = await startEvictionPlugin(directory, "pressure");
    plugin.top = pick([`evicted-${life}`]);
    for (const name of [`evicted-${life}`, `deleted-${life}`, `late-${life}`])
      expected.set(cluster.addPod(name), name);
    await until("registration", () => plugin?.registered === true, { explain });
    isOverloaded = life % 2 === 1;
    plugin.threshold = { ...hardPressure };
    await until("the eviction", () => cluster.evictions().includes(`evicted-${life}`), { explain });
    // Not before: an agent knows nothing of a pod that is gone before its first list.
    cluster.server.store.delete("pods", `deleted-${life}`, "default");
    const before = answers;
    await until("a request to the collector", () => answers > before, { explain });
    agent.kill("SIGKILL");
    await agent.ended;
    await plugin.stop();
    cluster.server.store.delete("pods", `late-${life}`, "default");
    isOverloaded = false;
  }
  start(flags);
  await until("the end of each pod", () => new Set(ended().map(uidOf)).size === expected.size, { explain });
  expect(ended().map(uidOf).sort()).toEqual([...expected.keys()].sort());
  expect(collector.logs.length).toBeGreaterThan(collector.distinct().length);

  const evicted = [...expected].filter(([, name]) => name.startsWith("evicted")).map(([uid]) => uid);
  const ends = ["terminated", "superseded", "unknown"];
  const outcomes = () => collector.distinct().filter(({ body }) => ends.includes(body.outcome?.result));
  const hasOutcome = (uid: string) => outcomes().some(({ body }) => body.outcome.uid === uid);
  await until("the outcome of each eviction", () => evicted.every(hasOutcome), { explain });
  const traced = () => new Set(collector.spans.map(({ traceId }) => Buffer.from(traceId).toString("hex")));
  await until("the trace of each eviction", () => outcomes().every(({ traceId }) => traced().has(traceId)), {
    explain,
  });

  const selected = collector.distinct().filter(({ body }) => body.victim);
  const selections = selected.map((log) => `${uidOf(log)} ${log.body.at}`);
  expect(new Set(selections).size).toBe(selections.length);
  expect(new Set(selected.map(uidOf)).size).toBe(5);
  // No position is missing, and no two records have one, except those of one round.
  const byPosition = Map.groupBy(collector.distinct(), ({ attributes }) =>
    Number(attributes["nodekeeper.record.sequence"]),
  );
  const positions = [...byPosition.keys()].sort((a, b) => a - b);
  expect(positions).toEqual(positions.map((_, at) => at + 1));
  for (const logs of byPosition.values())
    expect(new Set(logs.map(({ id }) => id.split("-")[0])).size).toBe(1);
  expect(collector.distinct().filter(({ event }) => event === "nodekeeper.gap")).toEqual([]);
  // Before it is removed: each request has records in the order of the queue.
  for (const { logs } of collector.requests) {
    const order = logs.map(({ attributes }) =>
      Number(attributes.find(({ key }) => key === "nodekeeper.record.sequence")?.value?.intValue),
    );
    expect(order).toEqual([...order].sort((a, b) => a - b));
  }
});

it("is not loaded and queues nothing unless it is configured", async () => {
  const env = { NODE_OPTIONS: `--import=${join(import.meta.dirname, "support/print-archive-modules.ts")}` };
  cluster.addPod("web");
  start({}, env);
  await until("the pod is known", () => agent.output().includes('"msg":"agent starts"'), { explain });
  const copied = async <T>(read: (copy: StateCopy) => T): Promise<T> => {
    using copy = await StateCopy.of(agentFlags(cluster).stateDir!, systemClock);
    return read(copy);
  };
  const count = (table: string) =>
    copied(({ database }) => database.first<{ n: number }>(`SELECT count(*) AS n FROM ${table}`)!.n);
  await until("the pod is recorded", async () => (await count("node_pod")) === 1, { explain });
  cluster.server.store.delete("pods", "web", "default");
  await until("its end", async () => (await count("node_pod WHERE left_at IS NOT NULL")) === 1, { explain });
  expect(await count("archive_queue")).toBe(0);
  expect(agent.output()).not.toContain("loaded file:");
  agent.kill("SIGTERM");
  await agent.ended;

  // Configured, it is loaded, and exports what was recorded before.
  start({ archiveEndpoint: collector.endpoint, archiveInterval: "100ms" }, env);
  await until("the end of the pod", () => ended().length === 1, { explain });
  expect(agent.output()).toContain("loaded file:");
});
