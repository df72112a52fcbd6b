import { existsSync } from "node:fs";
import { join } from "node:path";
import { silentLogger } from "@nodekeeper/core/lib";
import {
  customNodeResource,
  PodLifecycleClient,
  serveEvictionPlugin,
  serveReporterPlugin,
  status,
} from "@nodekeeper/sdk";
import { eventually, startDevCluster, until, type Workload } from "@nodekeeper/testing";
import { expect, it } from "vitest";

// Where an author's project has the package nodekeeper.
const agentScript = join(import.meta.dirname, "../packages/agent/src/main.ts");

const web: Workload = {
  name: "web",
  namespace: "default",
  owner: "ReplicaSet",
  replicas: 1,
  spec: { terminationGracePeriodSeconds: 1, containers: [{ name: "main", image: "images.example/web:1.0" }] },
};

it("a development cluster publishes what a reporter reports, and evicts what an eviction plugin requests", async () => {
  await using cluster = await startDevCluster({ agentScript, workloads: [web] });
  const common = { socketDir: cluster.pluginDirectory, log: silentLogger };
  await using stack = new AsyncDisposableStack();
  const reporter = serveReporterPlugin({
    ...common,
    name: "fans",
    async *report() {
      yield [customNodeResource(status("resources", { capacity: { "example.com/fans": "4" } }))];
    },
  });
  stack.defer(() => reporter.stop());
  await until("the fans are published", () => {
    const found = cluster.apiServer.store.get(
      "customnoderesources.node.katalyst.kubewharf.io",
      cluster.nodeName,
    );
    return JSON.stringify(found?.status ?? {}).includes('"example.com/fans":"4"');
  });

  const runningPod = () =>
    cluster.apiServer.store
      .list("pods", "default")
      .find(
        (pod) =>
          (pod.status as { phase?: string })?.phase === "Running" &&
          pod.metadata.deletionTimestamp === undefined,
      );
  const first = await until("the workload's pod runs", runningPod);
  const eviction = serveEvictionPlugin({
    ...common,
    name: "once",
    getEvictPods: (pods) =>
      pods
        .filter(({ uid }) => uid === first.metadata.uid)
        .map((pod) => ({ pod, reason: "the test requests it" })),
  });
  stack.defer(() => eviction.stop());
  const second = await until("its successor runs", () => {
    const pod = runningPod();
    return pod && pod.metadata.uid !== first.metadata.uid ? pod : undefined;
  });
  expect(second.metadata.name).toMatch(/^web-/);
  const plugins = await cluster.agentApi<{ name: string; state: string }[]>("plugins");
  expect(plugins.filter(({ state }) => state === "registered").map(({ name }) => name)).toEqual(
    expect.arrayContaining(["fans", "once"]),
  );
  using client = new PodLifecycleClient({ socket: cluster.apiSocket });
  await eventually(async () => {
    expect((await client.getPods()).map(({ uid }) => uid)).toContain(second.metadata.uid);
  });
});

it("a development cluster reports a misspelt field of a plugin, and publishes the plugin that has none; stopped, it is removed", async () => {
  await using cluster = await startDevCluster({ agentScript });
  await using stack = new AsyncDisposableStack();
  for (const [name, field] of [
    ["misspelt", "capacitty"],
    ["right", "capacity"],
  ] as const) {
    const plugin = serveReporterPlugin({
      name,
      socketDir: cluster.pluginDirectory,
      log: silentLogger,
      async *report() {
        yield [customNodeResource(status("resources", { [field]: { "example.com/fans": "4" } }))];
      },
    });
    stack.defer(() => plugin.stop());
  }
  await eventually(async () => {
    const plugins = await cluster.agentApi<{ name: string; problems: string[] }[]>("plugins");
    const problems = (name: string) => plugins.find((plugin) => plugin.name === name)?.problems;
    expect(problems("misspelt")?.join()).toContain(
      ".status.resources.capacitty: field not declared in schema",
    );
    expect(problems("right")).toEqual([]);
    const found = cluster.apiServer.store.get(
      "customnoderesources.node.katalyst.kubewharf.io",
      cluster.nodeName,
    );
    expect(found?.status).toMatchObject({ resources: { capacity: { "example.com/fans": "4" } } });
  });
  await cluster.stop();
  await cluster.stop();
  expect(existsSync(cluster.kubeconfig)).toBe(false);
});

it("a development cluster reports which setting is invalid", async () => {
  const settings = { eviction: { syncPeriod: "soon" } };
  await expect(startDevCluster({ agentScript, settings })).rejects.toThrow(/eviction\.syncPeriod/);
});
