import { cpSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { eventually, until } from "@nodekeeper/testing/until";
import { afterEach, beforeEach, expect, it } from "vitest";
import { runCli } from "../packages/agent/src/cli/index.ts";
import { type RunningAgent, startAgent } from "./support/agent.ts";
import { startCluster, type TestCluster } from "./support/cluster.ts";

// A policy that can be compiled, and fails when it is evaluated.
let cluster: TestCluster;
let agent: RunningAgent;
let hostRoot: string;

beforeEach(async () => {
  cluster = await startCluster();
  hostRoot = join(cluster.directory, "host");
  cpSync(join(import.meta.dirname, "fixtures/host/one-socket-v2"), hostRoot, { recursive: true });
});

afterEach(async () => {
  await agent?.stop();
  await cluster.stop();
});

const setProcessLimit = (limit: number) =>
  writeFileSync(join(hostRoot, "proc/sys/kernel/pid_max"), `${limit}\n`);

async function pluginsTable(): Promise<string> {
  const printed: string[] = [];
  const output = { write: (text: string) => void printed.push(text), isTerminal: false, columns: 300 };
  await runCli(["node", "nodekeeper", "plugins", "list", "--server", agent.address], output);
  return printed.join("");
}

it("a policy that fails at run time is failing in the list of plugins, with its place and since when, until it succeeds", async () => {
  const policies = join(cluster.directory, "policies.yaml");
  writeFileSync(
    policies,
    `policies:
  - name: share
    type: soft
    observed: 100.0 / (node.pids.max - 2500.0)
    operator: greaterThan
    threshold: 1000.0
    rank: [pod.priority]
  - name: calm
    type: soft
    when: node.pids.max < 1.0
    rank: [pod.priority]
`,
  );
  const config = join(cluster.directory, "config.yaml");
  writeFileSync(
    config,
    `apiVersion: nodekeeper.dev/v1alpha1\nkind: AgentConfiguration\neviction: { policies: { files: [${policies}] } }\n`,
  );
  setProcessLimit(2500);
  const before = Date.now();
  agent = await startAgent(
    cluster,
    { hostRoot, evictionInTreePlugins: "-rss-overuse-eviction-plugin" },
    config,
  );
  await until(
    "the policy is failing",
    async () => (await agent.plugin("policy-share"))?.error !== undefined,
    {
      explain: () => agent.plugins(),
    },
  );
  const row = await agent.plugin("policy-share");
  const error = `ThresholdMet: observed: ${policies}:4:15: is Infinity`;
  expect(row).toMatchObject({ state: "in-tree", errorId: "NK1611", error });
  const { errorSince } = row as { errorSince?: number };
  expect(errorSince).toBeGreaterThanOrEqual(before);
  // Its other rounds fail for the same time.
  const rounds = async () =>
    Number(/policy_problems_total\{policy="share",problem="node"\} (\d+)/.exec(await agent.metrics())?.[1]);
  await until("more rounds", async () => (await rounds()) > 2);
  expect(await agent.plugin("policy-share")).toMatchObject({ error, errorSince });
  expect(await pluginsTable()).toMatch(
    /^policy-share +EvictionPlugin +failing +\d+\S* .*NK1611: ThresholdMet: observed: .*4:15/m,
  );
  expect(await pluginsTable()).toMatch(/^policy-calm +EvictionPlugin +in-tree +- /m);
  expect((await agent.ready()).text).toMatch(/EvictionPluginsReady failed.*policy-share/);

  setProcessLimit(5000);
  await eventually(async () => expect(await agent.plugin("policy-share")).not.toHaveProperty("error"));
  expect(await pluginsTable()).toMatch(/^policy-share +EvictionPlugin +in-tree +- /m);
  await until("ready", async () => (await agent.ready()).status === 200, { explain: () => agent.ready() });
});

it("a policy whose filter fails for every pod is failing with the place, and evicts none", async () => {
  const policies = join(cluster.directory, "policies.yaml");
  writeFileSync(
    policies,
    `policies:
  - name: by-label
    type: hard
    when: node.pids.max > 0.0
    pods: pod.labels.app == "web"
    rank: [pod.priority]
`,
  );
  const config = join(cluster.directory, "config.yaml");
  writeFileSync(
    config,
    `apiVersion: nodekeeper.dev/v1alpha1\nkind: AgentConfiguration\neviction: { policies: { files: [${policies}] } }\n`,
  );
  cluster.addPod("a");
  cluster.addPod("b");
  const inTree = "-rss-overuse-eviction-plugin";
  agent = await startAgent(cluster, { hostRoot, evictionInTreePlugins: inTree }, config);
  const failures = async () => {
    const found = /policy_problems_total\{policy="by-label",problem="pods"\} (\d+)/.exec(
      await agent.metrics(),
    );
    return Number(found?.[1] ?? 0);
  };
  // More rounds than the ranking would wait for if the failures counted as answers.
  await until("five rounds", async () => (await failures()) >= 5, { explain: () => agent.plugins() });
  expect(await agent.plugin("policy-by-label")).toMatchObject({
    errorId: "NK1611",
    error: expect.stringMatching(/2 of 2 can't be judged.*policies\.yaml:5:22: No such key: app/),
  });
  expect(cluster.evictions()).toEqual([]);
});
