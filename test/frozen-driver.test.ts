import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Plugin, serveDeviceDriver } from "@nodekeeper/sdk";
import { DraKubelet } from "@nodekeeper/testing";
import { eventually, until } from "@nodekeeper/testing/until";
import { afterEach, beforeEach, expect, it } from "vitest";
import { type RunningAgent, startAgent } from "./support/agent.ts";
import { NODE, startCluster, type TestCluster } from "./support/cluster.ts";
import { type ScriptProcess, startScript } from "./support/processes.ts";

const DRIVER = "accelerators.example.com";
const SLICES = "resourceslices.resource.k8s.io";

let cluster: TestCluster;
let agent: RunningAgent;
let kubelet: DraKubelet;
// Short, for the sockets of plugins.
let directory: string;
let sample: ScriptProcess | undefined;
const drivers: Plugin[] = [];

beforeEach(async () => {
  directory = mkdtempSync(join(tmpdir(), "nkf-"));
  cluster = await startCluster();
});

afterEach(async () => {
  kubelet[Symbol.dispose]();
  sample?.kill("SIGKILL");
  await sample?.ended;
  sample = undefined;
  await agent.stop();
  await Promise.all(drivers.splice(0).map((driver) => driver.stop()));
  await cluster.stop();
  rmSync(directory, { recursive: true, force: true });
});

async function start(flags: Record<string, string> = {}): Promise<void> {
  agent = await startAgent(cluster, {
    devicesKubeletPluginEnabled: "true",
    devicesKubeletPluginRegistryDirectory: join(directory, "reg"),
    devicesKubeletPluginCdiDirectory: join(directory, "cdi"),
    devicesMinWriteInterval: "0s",
    devicesTaintDelay: "100ms",
    // That no connection is refused is not noticed by these.
    pluginLivenessInterval: "10m",
    ...flags,
  });
  kubelet = new DraKubelet(join(directory, "reg"));
}

async function startSample(): Promise<void> {
  sample = startScript("examples/driver/main.ts", ["--socket-dir", agent.pluginDir, "--interval", "3600s"]);
  await kubelet.untilRegistered(DRIVER);
}

interface Tainted {
  taints?: { key: string }[];
}

const keysOfTaints = () =>
  cluster.server.store
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
  (await agent.api("devices")).find(({ name }: { name: string }) => name === DRIVER);

it("a driver that is frozen has its devices tainted until it answers, and is shown", async () => {
  await start();
  await startSample();
  await until("published", areFree);
  sample!.kill("SIGSTOP");
  await until("tainted", areTainted);
  expect(await driverRow()).toMatchObject({
    isRegistered: true,
    state: "unresponsive",
    error: expect.stringContaining("does not answer"),
  });
  sample!.kill("SIGCONT");
  await until("released", areFree);
  await eventually(async () => expect(await driverRow()).toMatchObject({ state: "streaming" }));
});

it("a driver that is killed has its devices tainted before the next look at its socket", async () => {
  await start();
  await startSample();
  await until("published", areFree);
  sample!.kill("SIGKILL");
  await until("tainted", areTainted);
});

async function serve(name: string, hangs: boolean, called: string[] = []): Promise<Plugin> {
  const driver = serveDeviceDriver({
    name,
    socketDir: agent.pluginDir,
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
  drivers.push(driver);
  await driver.ready;
  return driver;
}

function claim(driver: string) {
  const { metadata } = cluster.server.store.put({
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
  await start({ devicesKubeletPluginCallTimeout: "100ms" });
  let hangs = true;
  const driver = serveDeviceDriver({
    name: DRIVER,
    socketDir: agent.pluginDir,
    async *devices() {
      yield [{ devices: [{ name: "device-0" }] }];
    },
    prepare: (wanted) => {
      if (hangs) return new Promise(() => {});
      return wanted.devices.map(({ request, pool, device }) => ({ request, pool, device }));
    },
    unprepare: () => {},
  });
  drivers.push(driver);
  await kubelet.untilRegistered(DRIVER);
  await until("published", areFree);
  const wanted = claim(DRIVER);
  expect((await kubelet.prepare(DRIVER, wanted))[wanted.uid]!.error).toMatch(/^NK1508: /);
  await until("tainted", areTainted);
  hangs = false;
  await eventually(async () =>
    expect((await kubelet.prepare(DRIVER, wanted))[wanted.uid]).toMatchObject({ error: "" }),
  );
  await until("released", areFree);
});

it("drivers that hang in unprepare hold up no other", async () => {
  await start({ devicesKubeletPluginCallTimeout: "10m", devicesWipeDelay: "10m" });
  const hanging = ["a", "b", "c", "d"].map((name) => `${name}.example.com`);
  for (const name of hanging) {
    const driver = await serve(name, false);
    await kubelet.untilRegistered(name);
    const wanted = claim(name);
    expect((await kubelet.prepare(name, wanted))[wanted.uid]).toMatchObject({ error: "" });
    await driver.stop();
    await until("disconnected", async () =>
      (await agent.api("claims")).some(
        (each: { driver: string; isPreparing: boolean }) => each.driver === name && !each.isPreparing,
      ),
    );
    expect((await kubelet.unprepare(name, wanted))[wanted.uid]).toEqual({ error: "" });
  }
  const called: string[] = [];
  for (const name of hanging) await serve(name, true, called);
  await until("all hang", () => called.length === hanging.length);
  await serve(DRIVER, false);
  await kubelet.untilRegistered(DRIVER);
  const wanted = claim(DRIVER);
  expect((await kubelet.prepare(DRIVER, wanted))[wanted.uid]).toMatchObject({ error: "" });
});
