import { type DeviceDriverOptions, type Plugin, serveDeviceDriver } from "@nodekeeper/sdk";
import { until } from "@nodekeeper/testing/until";
import { expect, it } from "vitest";
import { useClaimsNode } from "./support/claims-node.ts";
import { NODE } from "./support/cluster.ts";

const DRIVER = "accelerators.example.com";

const node = useClaimsNode();

const edits: NonNullable<DeviceDriverOptions["prepare"]> = ({ devices }) =>
  devices.map(({ request, pool, device }) => ({ request, pool, device, edits: { env: { DEVICE: device } } }));

async function serve(prepare = edits): Promise<Plugin> {
  const driver = serveDeviceDriver({
    name: DRIVER,
    socketDir: node.agent.pluginDir,
    async *devices() {
      yield [{ devices: [{ name: "device-0" }, { name: "device-1" }] }];
    },
    prepare,
    unprepare: () => {},
  });
  node.drivers.push(driver);
  await driver.ready;
  return driver;
}

/** Stores an allocated claim, and gives it as the kubelet names it. */
function claim(name: string, device = "device-0") {
  const { metadata } = node.cluster.server.store.put({
    apiVersion: "resource.k8s.io/v1",
    kind: "ResourceClaim",
    metadata: { name, namespace: "default" },
    spec: {},
    status: {
      allocation: { devices: { results: [{ request: "req", driver: DRIVER, pool: NODE, device }] } },
    },
  });
  return { namespace: "default", name, uid: metadata.uid! };
}

const waits = () => node.agent.logLines.filter(({ msg }) => msg.includes("waits for its driver")).length;
const isPreparing = async () =>
  (await node.agent.api("claims")).find(({ driver }: { driver: string }) => driver === DRIVER)?.isPreparing;

it("a claim that comes while its driver is replaced is prepared by the next instance, at the kubelet's first call", async () => {
  await node.start();
  const first = await serve();
  await node.kubelet.untilRegistered(DRIVER);
  await first.stop();
  await until("disconnected", async () => (await isPreparing()) === false);
  const wanted = claim("early");
  const answer = node.kubelet.prepare(DRIVER, wanted);
  await until("it waits", () => waits() === 1);
  await serve();
  expect((await answer)[wanted.uid]).toMatchObject({ error: "" });
});

it("a claim whose driver ends during the call is prepared by the next instance", async () => {
  await node.start();
  const isCalled = Promise.withResolvers<void>();
  const first = await serve(async (_, signal) => {
    isCalled.resolve();
    await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
    throw new Error("the driver is stopping");
  });
  const wanted = claim("interrupted");
  const answer = node.kubelet.prepare(DRIVER, wanted);
  await isCalled.promise;
  await first.stop();
  await until("it waits", () => waits() === 1);
  await serve();
  expect((await answer)[wanted.uid]).toMatchObject({ error: "" });
});

it("a claim that comes before its driver has registered with a new agent is prepared when it has", async () => {
  await node.start();
  const first = await serve();
  await node.kubelet.prepare(DRIVER, claim("running"));
  await node.agent.stop();
  await first.stop();
  await node.start();
  await node.kubelet.untilRegistered(DRIVER);
  const wanted = claim("next", "device-1");
  const answer = node.kubelet.prepare(DRIVER, wanted);
  await until("it waits", () => waits() === 1);
  await serve();
  expect((await answer)[wanted.uid]).toMatchObject({ error: "" });
});

it("a claim that is prepared is confirmed without its driver", async () => {
  await node.start();
  const driver = await serve();
  const wanted = claim("running");
  const answer = await node.kubelet.prepare(DRIVER, wanted);
  await driver.stop();
  await until("disconnected", async () => (await isPreparing()) === false);
  expect(await node.kubelet.prepare(DRIVER, wanted)).toEqual(answer);
  expect(waits()).toBe(0);
});

it("a claim that a driver prepares when the agent is stopped is answered", async () => {
  await node.start();
  const isCalled = Promise.withResolvers<void>();
  const mayEnd = Promise.withResolvers<void>();
  await serve(async (wanted, signal) => {
    isCalled.resolve();
    await mayEnd.promise;
    return edits(wanted, signal);
  });
  const wanted = claim("last");
  const answer = node.kubelet.prepare(DRIVER, wanted);
  await isCalled.promise;
  const stopping = node.agent.stop();
  mayEnd.resolve();
  expect((await answer)[wanted.uid]).toMatchObject({ error: "" });
  await stopping;
});

it("an error of a connected driver is not waited for", async () => {
  await node.start();
  await serve(() => {
    throw new Error("firmware does not answer");
  });
  const wanted = claim("bad");
  expect((await node.kubelet.prepare(DRIVER, wanted))[wanted.uid]!.error).toContain(
    "firmware does not answer",
  );
  expect(waits()).toBe(0);
});

it("a driver that has been disconnected for longer than devices.wipeDelay is not waited for", async () => {
  await node.start({ devicesWipeDelay: "0s" });
  const driver = await serve();
  await node.kubelet.prepare(DRIVER, claim("running"));
  await driver.stop();
  await until("disconnected", async () => (await isPreparing()) === false);
  const wanted = claim("late", "device-1");
  expect((await node.kubelet.prepare(DRIVER, wanted))[wanted.uid]!.error).toMatch(
    /^NK1508: .*is not connected/,
  );
  expect(waits()).toBe(0);
});
