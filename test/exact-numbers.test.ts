import { once } from "node:events";
import { join } from "node:path";
import { type DevicePool, serveDeviceDriver } from "@nodekeeper/sdk";
import { until } from "@nodekeeper/testing/until";
import { afterEach, beforeEach, expect, it } from "vitest";
import { startAgent } from "./support/agent.ts";
import { NODE, startCluster, type TestCluster } from "./support/cluster.ts";
import { startNeighbour } from "./support/neighbour.ts";
import { rawField, startGoodPlugin } from "./support/plugins.ts";

// Integers beyond 2^53, which a double rounds, in what the agent reads from the API server and writes or compares again.

let cluster: TestCluster;
const ends: (() => Promise<unknown>)[] = [];
beforeEach(async () => {
  cluster = await startCluster();
  ends.push(() => cluster.stop());
});
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end();
});

it("a report that is published again from the API server alone keeps its digits", async () => {
  const serial = "5764611469732290987";
  const first = await startAgent(cluster, { reportingPluginGracePeriod: "10m" });
  const plugin = await startGoodPlugin(
    first.pluginDir,
    "serials",
    rawField("resources", `{"serials":{"card":${serial}}}`),
  );
  const stored = () => JSON.stringify(cluster.cnr()?.status?.resources?.serials);
  await until("it is published", () => stored() === `{"card":${serial}}`, { explain: stored });
  await first.stop();
  await plugin.stop();

  // Without its state the agent has the value from the object alone.
  const agent = await startAgent(cluster, {
    reportingPluginGracePeriod: "10m",
    stateDir: join(cluster.directory, "new-state"),
  });
  ends.push(() => agent.stop());
  const neighbour = await startNeighbour(cluster, agent.pluginDir);
  ends.push(() => neighbour.stop());
  await neighbour.update();
  expect(stored()).toBe(`{"card":${serial}}`);
});

it("an attribute of a device that changes in its last digit is published, and shown as it is", async () => {
  const DRIVER = "cards.example.com";
  const agent = await startAgent(cluster, { devicesMinWriteInterval: "0s" });
  ends.push(() => agent.stop());
  const changes = new EventTarget();
  const pools = (int: bigint): DevicePool[] => [
    { devices: [{ name: "card-0", attributes: { serial: { int } } }] },
  ];
  const driver = serveDeviceDriver({
    name: DRIVER,
    socketDir: agent.pluginDir,
    async *devices(signal) {
      yield pools(5764611469732290987n);
      await once(changes, "change", { signal });
      yield pools(5764611469732290988n);
    },
  });
  ends.push(() => driver.stop());
  await driver.ready;
  const published = () =>
    JSON.stringify(
      cluster.server.store
        .list("resourceslices.resource.k8s.io")
        .map(({ spec }) => (spec as { devices: { attributes: object }[] }).devices[0]?.attributes),
    );
  const serials = (int: string) => `[{"serial":{"int":${int}}}]`;
  await until("it is published", () => published() === serials("5764611469732290987"), {
    explain: published,
  });
  changes.dispatchEvent(new Event("change"));
  await until("the change is published", () => published() === serials("5764611469732290988"), {
    explain: published,
  });
  expect(await agent.api(`devices/list?driver=${DRIVER}&limit=10`)).toMatchObject({
    items: [{ pool: NODE, attributes: { serial: "5764611469732290988" } }],
  });
});
