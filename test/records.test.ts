import { randomUUID } from "node:crypto";
import { cpSync } from "node:fs";
import { join } from "node:path";
import { SteppedClock } from "@nodekeeper/testing";
import { until } from "@nodekeeper/testing/until";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { runCli } from "../packages/agent/src/cli/index.ts";
import { StateDatabase } from "../packages/agent/src/state/index.ts";
import { type RunningAgent, startAgent } from "./support/agent.ts";
import { startCluster, type TestCluster } from "./support/cluster.ts";
import {
  hardPressure,
  pick,
  podNamed,
  startEvictionPlugin,
  type TestEvictionPlugin,
} from "./support/eviction-plugin.ts";

// What records keep, and what is said of what they do not keep. The whole agent before the embedded API server.
const YEARS_MS = 10 * 365 * 24 * 3_600_000;
let clock: SteppedClock;
let cluster: TestCluster;
let agent: RunningAgent;
let plugins: TestEvictionPlugin[];

beforeEach(async () => {
  clock = new SteppedClock();
  cluster = await startCluster();
  plugins = [];
});
afterEach(async () => {
  for (const plugin of plugins) await plugin.stop();
  await agent?.stop();
  await cluster.stop();
});

async function start(flags: Record<string, string> = {}): Promise<void> {
  agent = await startAgent(cluster, flags, undefined, clock);
}

async function addPlugin(name: string): Promise<TestEvictionPlugin> {
  const plugin = await startEvictionPlugin(agent.pluginDir, name);
  plugins.push(plugin);
  await until("registration", () => plugin.registered === true, { explain: () => agent.logLines });
  return plugin;
}

async function explain(pod: string): Promise<string> {
  let text = "";
  const write = (more: string) => {
    text += more;
  };
  const output = { write, isTerminal: false, columns: 120 };
  expect(await runCli(["node", "nodekeeper", "explain", "pod", pod, "--server", agent.address], output)).toBe(
    0,
  );
  return text;
}

/** Moves time on until the plugin was asked in so many more rounds. */
async function untilRounds(plugin: TestEvictionPlugin, count: number): Promise<void> {
  const last = plugin.rounds + count;
  await until(`${count} rounds`, () => {
    clock.advance(1_000);
    return plugin.rounds >= last;
  });
}

/** Evicts the pod, and waits until its end is recorded. */
async function evict(name: string): Promise<void> {
  const pressure = await addPlugin("pressure");
  pressure.top = pick([name]);
  pressure.threshold = { ...hardPressure };
  await until("its end is recorded", async () => {
    const { rounds = [] } = await agent.api(`eviction/explain?pod=default/${name}`);
    return rounds.some(({ outcome }: { outcome: unknown }) => outcome !== null);
  });
  pressure.threshold = {};
}

it("an eviction is explained after another plugin has named 900 pods that do not exist in each of many rounds", async () => {
  cluster.addPod("web");
  await start({ evictionRecordsMaxSize: "1Mi" });
  await evict("web");
  const flood = await addPlugin("flood");
  flood.evictPods = () => ({
    evictPods: Array.from({ length: 900 }, () => {
      const name = randomUUID();
      return { pod: podNamed(name, name), reason: "because", forceEvict: true };
    }),
  });
  await untilRounds(flood, 60);
  expect(await explain("default/web")).toMatch(/^Evicted at .*requested by pressure: /m);
});

it("a wall clock that is years ahead for a while loses no record that is younger by the monotonic clock", async () => {
  cluster.addPod("web");
  await start();
  await evict("web");
  const other = await addPlugin("other");
  clock.step(YEARS_MS);
  cluster.addPod("api");
  other.top = pick(["api"]);
  other.threshold = { ...hardPressure };
  await untilRounds(other, 3);
  other.threshold = {};
  await agent.stop();
  await start();
  await until("it is served again", () => other.rounds > 0 && agent.address !== "");
  clock.step(-YEARS_MS);
  await untilRounds(other, 3);
  expect(await explain("default/web")).toMatch(/^Evicted at .*requested by pressure: /m);
});

it("while the disk is full, what waits in memory is explained and listed; an agent that is killed meanwhile leaves a gap", async () => {
  cluster.addPod("web");
  const opened = vi.spyOn(StateDatabase, "open");
  await start();
  const database = opened.mock.results.at(-1)!.value as StateDatabase;
  opened.mockRestore();
  await until("it is recorded", async () => {
    const { history } = await agent.api("eviction/explain?pod=default/web");
    return history !== undefined;
  });
  // Each write fails, as on a full disk. A page limit would leave room in the pages of the records.
  database.connection.exec("PRAGMA query_only = 1");
  await evict("web");
  await until("it is deleted", () => cluster.server.store.get("pods", "web", "default") === undefined);
  expect(await explain("default/web")).toMatch(/^Evicted at .*requested by pressure: /m);
  const { items } = await agent.api("eviction/evictions?since=0");
  expect(items).toMatchObject([{ name: "web", outcome: { result: "terminated" } }]);
  const [round] = await agent.api("eviction/rounds?since=0");
  expect(round).toMatchObject({ victims: [{ name: "web" }] });
  const marks = await agent.api("marks?since=0");
  expect(marks.items).toContainEqual(expect.objectContaining({ kind: "evictionSelected" }));

  // What an agent that is killed now leaves behind.
  const stateDir = join(cluster.directory, "left");
  cpSync(agent.stateDir, stateDir, { recursive: true, preserveTimestamps: true });
  await agent.stop();
  await start({ stateDir });
  await until("its end is found", async () => {
    const { history } = await agent.api("eviction/explain?pod=default/web");
    return history?.leftAt != null;
  });
  const { coverage } = await agent.api("eviction/explain?pod=default/web");
  expect(coverage.gaps).toMatchObject([{ why: expect.stringContaining("could not be written") }]);
  expect(await explain("default/web")).toMatch(
    /[Rr]ecords are missing between .* and .*: the state directory could not be written/,
  );
});
