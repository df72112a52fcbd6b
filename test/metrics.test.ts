import { join } from "node:path";
import { systemClock } from "@nodekeeper/core/lib";
import { SimulatedCri, SimulatedRuntime } from "@nodekeeper/testing";
import { eventually, until } from "@nodekeeper/testing/until";
import { afterAll, beforeAll, expect, it } from "vitest";
import { type RunningAgent, startAgent } from "./support/agent.ts";
import { startCluster, type TestCluster } from "./support/cluster.ts";

// A series of each health check among them.
const MOST_SERIES = 310;

let cluster: TestCluster;
let cri: SimulatedCri;
let agent: RunningAgent;

// Everything that is enabled by default, and the plugins that come with the agent.
beforeAll(async () => {
  cluster = await startCluster();
  const socket = join(cluster.directory, "cri.sock");
  const runtime = new SimulatedRuntime({ clock: systemClock });
  for (let pod = 0; pod < 10; pod++)
    runtime.runSandbox({ uid: `pod-${pod}`, name: `pod-${pod}`, namespace: "default" });
  cri = new SimulatedCri({ runtime, socket, clock: systemClock });
  await cri.start();
  agent = await startAgent(cluster, {
    lifecycle: "true",
    runtimeEndpoint: `unix://${socket}`,
    reportingInTreePlugins: "*,-kubelet-reporter-plugin",
    evictionInTreePlugins: "*",
  });
  await until("the node is reported", () => cluster.cnr()?.spec?.nodeResourceProperties !== undefined);
  await until("rounds are done", async () =>
    /nodekeeper_eviction_rounds_total{result="done"} [2-9]/.test(await agent.metrics()),
  );
});
afterAll(async () => {
  await agent.stop();
  await cri.stop();
  await cluster.stop();
});

it("are few series on an idle node", async () => {
  const metrics = await agent.metrics();
  const names = metrics.split("\n").flatMap((line) => /^[^#{ ]+/.exec(line)?.[0] ?? []);
  const families = Map.groupBy(names, (name) => name.replace(/_(?:bucket|sum|count)$/, ""));
  const largest = [...families]
    .map(([name, { length }]) => `${length} ${name}`)
    .sort((a, b) => Number.parseInt(b, 10) - Number.parseInt(a, 10));
  if (process.env.SHOW_SERIES) console.log(names.length, largest.join("\n"));
  expect(names.length, largest.slice(0, 20).join("\n")).toBeLessThan(MOST_SERIES);
});

it("are OpenMetrics for those who ask for it", async () => {
  await eventually(async () => {
    const response = await fetch(`http://${agent.address}/metrics`, {
      headers: { Accept: "application/openmetrics-text; version=1.0.0" },
    });
    expect(response.headers.get("content-type")).toBe(
      "application/openmetrics-text; version=1.0.0; charset=utf-8",
    );
    expect(await response.text()).toMatch(/\n# TYPE nodekeeper_eviction_rounds counter\n[\s\S]*\n# EOF\n$/);
  });
});
