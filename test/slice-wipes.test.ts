import { type Plugin, serveDeviceDriver } from "@nodekeeper/sdk";
import { until } from "@nodekeeper/testing/until";
import { afterEach, beforeEach, expect, it } from "vitest";
import { type RunningAgent, startAgent } from "./support/agent.ts";
import { startCluster, type TestCluster } from "./support/cluster.ts";

const DRIVER = "gpu.example.com";
const SLICES = "resourceslices.resource.k8s.io";
// Of 128 devices each, as the API allows.
const SLICE_COUNT = 4;
const RESTARTS = 4;

let cluster: TestCluster;
let agent: RunningAgent;
let driver: Plugin;

beforeEach(async () => {
  cluster = await startCluster();
  agent = await startAgent(cluster, { devicesKubeletPluginEnabled: "false" });
  driver = serveDeviceDriver({
    name: DRIVER,
    socketDir: agent.pluginDir,
    async *devices() {
      yield [{ devices: Array.from({ length: 128 * SLICE_COUNT }, (_, at) => ({ name: `gpu-${at}` })) }];
    },
  });
  await driver.ready;
  await until("published", () => slices().length === SLICE_COUNT);
});

afterEach(async () => {
  await driver.stop();
  await agent.stop();
  await cluster.stop();
});

const slices = () => cluster.server.store.list(SLICES);
const uids = () => slices().map(({ metadata }) => metadata.uid);

// As the kubelet does when it starts.
function wipe(): void {
  for (const { metadata } of slices()) cluster.server.store.delete(SLICES, metadata.name!);
}

const repairs = async () =>
  Number(/^nodekeeper_devices_repairs_total (\d+)/m.exec(await agent.metrics())?.[1] ?? 0);

it("a kubelet that restarts again and again deletes the node's slices: they are repaired together, not one by one", async () => {
  for (let restart = 1; restart <= RESTARTS; restart++) {
    const before = new Set(uids());
    wipe();
    await until(`whole after wipe ${restart}`, () => {
      const now = uids();
      return now.length === SLICE_COUNT && now.every((uid) => !before.has(uid));
    });
  }
  // A machine that is busy for long between two deletions makes two of one.
  const made = await repairs();
  expect(made).toBeGreaterThan(0);
  expect(made).toBeLessThan(2 * RESTARTS);
});
