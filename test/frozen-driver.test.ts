import { type Plugin, serveDeviceDriver } from "@nodekeeper/sdk";
import { eventually, until } from "@nodekeeper/testing/until";
import { afterEach, expect, it } from "vitest";
import { useClaimsNode } from "./support/claims-node.ts";
import { NODE } from "./support/cluster.ts";
import { type ScriptProcess, startScript } from "./support/processes.ts";

const DRIVER = "accelerators.example.com";
const SLICES = "resourceslices.resource.k8s.io";

const node = useClaimsNode({
  devicesMinWriteInterval: "0s",
  devicesTaintDelay: "100ms",
  // That no connection is refused is not noticed by these.
  pluginLivenessInterval: "10m",
});
let sample: ScriptProcess | undefined;

afterEach(async () => {
  sample?.kill("SIGKILL");
  await sample?.ended;
  sample = undefined;
});

async function startSample(): Promise<void> {
  sample = startScript("examples/driver/main.ts", [
    "--socket-dir",
    node.agent.pluginDir,
    "--interval",
    "3600s",
  ]);
  await node.kubelet.untilRegistered(DRIVER);
}

interface Tainted {
  taints?: { key: string }[];
}

const keysOfTaints = () =>
  node.cluster.server.store
    .list(SLICES)
    .flatMap(({ spec }) => (spec as { devices: Tainted[] }).devices)
    .map(({ taints = [] }) => taints.map(({ key }) => key));
const areTainted = () => {
  const keys = keysOfTaints();
  return keys.length > 0 && keys.every((own) => own.includes("nodekeeper.dev/driver-disconnected"));
};
const areFree = () => {
  const keys = keysOfTaints();
  return keys.length > 0 && keys.every((own) => own.length === 0);
};
const driverRow = async () =>
  (await node.agent.api("devices")).find(({ name }: { name: string }) => name === DRIVER);

it("a driver that is frozen has its devices tainted until it answers, and is shown", async () => {
  await node.start();
  await startSample();
  await until("published", areFree);
  sample!.kill("SIGSTOP");
  await until("tainted", areTainted);
  expect(await driverRow()).toMatchObject({
    isRegistered: true,
    state: "unresponsive",
    error: expect.stringContaining("does not respond"),
  });
  sample!.kill("SIGCONT");
  await until("released", areFree);
  await eventually(async () => expect(await driverRow()).toMatchObject({ state: "streaming" }));
});

it("a driver that is killed has its devices tainted before the next look at its socket", async () => {
  await node.start();
  await startSample();
  await until("published", areFree);
  sample!.kill("SIGKILL");
  await until("tainted", areTainted);
});

async function serve(name: string, hangs: boolean, called: string[] = []): Promise<Plugin> {
  const driver = serveDeviceDriver({
    name,
    socketDir: node.agent.pluginDir,
    async *devices() {
      yield [{ devices: [{ name: "device-0" }] }];
    },
    prepare: (claim) => {
      if (hangs) return new Promise(() => {});
      return claim.devices.map(({ request, pool, device }) => ({ request, pool, device }));
    },
    async unprepare() {
      called.push(name);
      if (hangs) await new Promise(() => {});
    },
  });
  node.drivers.push(driver);
  await driver.ready;
  return driver;
}

function claim(driver: string) {
  const { metadata } = node.cluster.server.store.put({
    apiVersion: "resource.k8s.io/v1",
    kind: "ResourceClaim",
    metadata: { name: `of-${driver}`, namespace: "default" },
    spec: {},
    status: {
      allocation: { devices: { results: [{ request: "req", driver, pool: NODE, device: "device-0" }] } },
    },
  });
  return { namespace: "default", name: metadata.name!, uid: metadata.uid! };
}

it("a driver that leaves a call unanswered has its devices tainted until it answers one", async () => {
  await node.start({ devicesKubeletPluginCallTimeout: "100ms" });
  let hangs = true;
  const driver = serveDeviceDriver({
    name: DRIVER,
    socketDir: node.agent.pluginDir,
    async *devices() {
      yield [{ devices: [{ name: "device-0" }] }];
    },
    prepare: (wanted) => {
      if (hangs) return new Promise(() => {});
      return wanted.devices.map(({ request, pool, device }) => ({ request, pool, device }));
    },
    unprepare: () => {},
  });
  node.drivers.push(driver);
  await node.kubelet.untilRegistered(DRIVER);
  await until("published", areFree);
  const wanted = claim(DRIVER);
  expect((await node.kubelet.prepare(DRIVER, wanted))[wanted.uid]!.error).toMatch(/^NK1508: /);
  await until("tainted", areTainted);
  hangs = false;
  await eventually(async () =>
    expect((await node.kubelet.prepare(DRIVER, wanted))[wanted.uid]).toMatchObject({ error: "" }),
  );
  await until("released", areFree);
});

it("drivers that hang in unprepare hold up no other", async () => {
  await node.start({ devicesKubeletPluginCallTimeout: "10m", devicesWipeDelay: "10m" });
  const hanging = ["a", "b", "c", "d"].map((name) => `${name}.example.com`);
  for (const name of hanging) {
    const driver = await serve(name, false);
    await node.kubelet.untilRegistered(name);
    const wanted = claim(name);
    expect((await node.kubelet.prepare(name, wanted))[wanted.uid]).toMatchObject({ error: "" });
    await driver.stop();
    await until("disconnected", async () =>
      (await node.agent.api("claims")).some(
        (each: { driver: string; isPreparing: boolean }) => each.driver === name && !each.isPreparing,
      ),
    );
    expect((await node.kubelet.unprepare(name, wanted))[wanted.uid]).toEqual({ error: "" });
  }
  const called: string[] = [];
  for (const name of hanging) await serve(name, true, called);
  await until("all hang", () => called.length === hanging.length);
  await serve(DRIVER, false);
  await node.kubelet.untilRegistered(DRIVER);
  const wanted = claim(DRIVER);
  expect((await node.kubelet.prepare(DRIVER, wanted))[wanted.uid]).toMatchObject({ error: "" });
});
