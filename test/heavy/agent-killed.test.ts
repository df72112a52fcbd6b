import type { KubeObject } from "@nodekeeper/core/kube";
import { silentLogger, systemClock } from "@nodekeeper/core/lib";
import { metadata, node } from "@nodekeeper/sdk";
import { until } from "@nodekeeper/testing/until";
import { afterAll, beforeAll, expect, it } from "vitest";
import { Marks, StateDatabase } from "../../packages/agent/src/state/index.ts";
import { agentFlags, untilWidgets } from "../support/agent.ts";
import { startCluster, type TestCluster } from "../support/cluster.ts";
import { type GoodPlugin, startGoodPlugin, widgets } from "../support/plugins.ts";
import { argumentsOf, type ScriptProcess, startScript } from "../support/processes.ts";
import { sized } from "../support/sizes.ts";

const NAMES = ["one", "two", "three"];

let cluster: TestCluster;
let plugins: GoodPlugin[];
let agent: ScriptProcess | undefined;

beforeAll(async () => {
  cluster = await startCluster();
  const { pluginDirectories } = agentFlags(cluster);
  plugins = await Promise.all(
    NAMES.map((name) => startGoodPlugin(pluginDirectories!, name, ...contents(name, 0))),
  );
});
afterAll(async () => {
  agent?.kill("SIGKILL");
  await agent?.ended;
  await Promise.all(plugins.map((plugin) => plugin.stop()));
  await cluster.stop();
});

function contents(name: string, value: number) {
  return [widgets(name, value), node(metadata("labels", { [`example.dev/${name}`]: String(value) }))];
}

function startRealAgent(): ScriptProcess {
  const flags = { ...agentFlags(cluster), reportingInTreePlugins: "system-reporter-plugin" };
  return startScript("packages/agent/src/main.ts", ["run", ...argumentsOf(flags)]);
}

// biome-ignore lint/suspicious/noExplicitAny: bodies have any shape
type Body = any;

/** What a write leaves out that is published and whose plugin lives. */
function withdrawn({ path, body }: { path: string; body?: Body }): string[] {
  if (path.includes("/nodes/")) {
    const has = (name: string) => body.metadata.labels?.[`example.dev/${name}`] !== undefined;
    return NAMES.filter((name) => !has(name)).map((name) => `label of ${name}`);
  }
  if (path.endsWith("/status")) {
    const capacity = body.status?.resources?.capacity ?? {};
    return NAMES.filter((name) => !(`widgets.example/${name}` in capacity));
  }
  return body.spec?.nodeResourceProperties?.length > 0 ? [] : ["the machine's properties"];
}

const isAllThere = (cnr: KubeObject | undefined) =>
  ((cnr?.spec as Body)?.nodeResourceProperties?.length ?? 0) > 0 &&
  NAMES.every((name) => cluster.widgets(name) && cluster.node().metadata.labels[`example.dev/${name}`]);

it("SIGKILL of the agent at any moment withdraws nothing and loses no last value", async () => {
  agent = startRealAgent();
  await until("everything is published once", () => isAllThere(cluster.cnr()), { explain: agent.output });
  const firstWrites = cluster.requests.length;
  let value = 0;
  const sayAll = () => {
    value++;
    for (const [at, plugin] of plugins.entries()) plugin.say(...contents(NAMES[at]!, value));
  };

  // Killed while it writes, then while it starts, at its first calls, and after more and more of them.
  for (const calls of sized([3], [0, 1, 2, 3, 5, 8, 12, 20])) {
    sayAll();
    agent.kill("SIGKILL");
    await agent.ended;
    sayAll();
    const seen = cluster.requests.length;
    agent = startRealAgent();
    await until(
      `${calls} calls of the new one`,
      () => {
        if (calls > 2) sayAll();
        return cluster.requests.length >= seen + calls;
      },
      { explain: agent.output },
    );
  }
  sayAll();
  for (const name of NAMES) await untilWidgets(cluster, name, value);
  await until("the labels", () =>
    NAMES.every((name) => cluster.node().metadata.labels[`example.dev/${name}`] === String(value)),
  );

  const writes = cluster.requests
    .slice(firstWrites)
    .filter(({ method, body, query }) => method === "PATCH" && body !== undefined && !query.has("dryRun"));
  expect(writes.length).toBeGreaterThan(2);
  expect(writes.flatMap(withdrawn)).toEqual([]);
});

it("what a plugin reported last before both it and the agent died is still published by the next agent", async () => {
  const said = 1_000;
  const [one] = plugins;
  one!.say(...contents("one", said));
  await untilWidgets(cluster, "one", said);
  agent!.kill("SIGKILL");
  await agent!.ended;
  await one!.stop();
  const seen = cluster.requests.length;
  agent = startRealAgent();
  plugins[1]!.say(...contents("two", said));
  await untilWidgets(cluster, "two", said);
  expect(cluster.widgets("one")).toBe(String(said));
  const writes = cluster.requests.slice(seen).filter(({ method, body }) => method === "PATCH" && body);
  expect(writes.flatMap(withdrawn)).toEqual([]);
  agent.kill("SIGTERM");
  expect(await agent.ended).toBe(0);
});

it("the timeline has which agents were killed and which was stopped", () => {
  const common = { clock: systemClock, log: silentLogger };
  using database = StateDatabase.open({ directory: agentFlags(cluster).stateDir!, ...common });
  const marks = new Marks(database, systemClock, silentLogger);
  const { items } = marks.page({ since: 0, until: Date.now(), after: 0, limit: 1_000 });
  const kinds = items.map(({ kind }) => kind).filter((kind) => kind.startsWith("agent"));
  expect(kinds[0]).toBe("agentStarted");
  expect(new Set(kinds.slice(1, -1))).toEqual(new Set(["agentStartedAfterKill"]));
  expect(kinds.at(-1)).toBe("agentStopped");
});
