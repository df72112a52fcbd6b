import { SteppedClock } from "@nodekeeper/testing";
import { until } from "@nodekeeper/testing/until";
import { afterAll, beforeAll, expect, it } from "vitest";
import { type RunningAgent, startAgent } from "./support/agent.ts";
import { startCluster, type TestCluster } from "./support/cluster.ts";
import { type Neighbour, startNeighbour } from "./support/neighbour.ts";
import { type ScriptProcess, startScript } from "./support/processes.ts";

const USABLE = "example.nodekeeper.dev/usable-widgets";

const GRACE_PERIOD_MS = 600_000;

const clock = new SteppedClock();
let cluster: TestCluster;
let agent: RunningAgent;
let neighbour: Neighbour;
let sample: ScriptProcess;

beforeAll(async () => {
  cluster = await startCluster();
  agent = await startAgent(cluster, { reportingPluginGracePeriod: "10m" }, undefined, clock);
  neighbour = await startNeighbour(cluster, agent.pluginDir);
});
afterAll(async () => {
  sample?.kill("SIGKILL");
  await sample?.ended;
  await neighbour.stop();
  await agent.stop();
  await cluster.stop();
});

const startSample = () =>
  startScript("examples/reporter/main.ts", ["--socket-dir", agent.pluginDir, "--interval", "100ms"]);
const usable = () => cluster.node().metadata.annotations?.[USABLE];
const isPublished = () =>
  usable() !== undefined &&
  cluster.node().metadata.labels["example.nodekeeper.dev/has-widgets"] === "true" &&
  cluster.cnr()?.status?.resources?.capacity?.["example.nodekeeper.dev/widgets"] === "16";
const untilLost = () =>
  until("it is found lost", async () =>
    (await agent.plugins()).find(({ name, state }) => name === "example-reporter" && state === "lost"),
  );

it("keeps its content through the grace period, a restart updates it, and without one it is withdrawn", async () => {
  sample = startSample();
  await until("its content", isPublished, { explain: () => sample.output() });
  sample.kill("SIGKILL");
  await sample.ended;
  const row = await untilLost();
  expect(row.error).toMatch(/^no process listens on its registration socket/);
  expect(isPublished()).toBe(true);
  await neighbour.update();

  sample = startSample();
  await until(
    "it is registered again",
    async () => (await agent.plugin("example-reporter"))?.state === "registered",
  );
  const last = usable();
  await until("it updates", () => usable() !== last);
  expect(isPublished()).toBe(true);

  sample.kill("SIGKILL");
  await untilLost();
  clock.advance(GRACE_PERIOD_MS);
  await until("its content is withdrawn", () => {
    const { annotations, labels } = cluster.node().metadata;
    return !annotations?.[USABLE] && !("example.nodekeeper.dev/has-widgets" in labels);
  });
  await until("in the CNR too", () => cluster.cnr().status.topologyZone === undefined);
  await neighbour.update();
  expect(cluster.node().metadata.labels["kubernetes.io/hostname"]).toBeDefined();
});
