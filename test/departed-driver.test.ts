import { mkdirSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { RegistrationDefinition } from "@nodekeeper/core/gen/pluginregistration/v1/api.ts";
import { type Plugin, serveDeviceDriver } from "@nodekeeper/sdk";
import { DraKubelet, SteppedClock } from "@nodekeeper/testing";
import { eventually, until } from "@nodekeeper/testing/until";
import { createServer, type Server } from "nice-grpc";
import { afterEach, beforeEach, expect, it } from "vitest";
import { type RunningAgent, startAgent } from "./support/agent.ts";
import { NODE, startCluster, type TestCluster } from "./support/cluster.ts";

const DRIVER = "gpu.example.com";

let cluster: TestCluster;
let agent: RunningAgent;
let kubelet: DraKubelet;
let clock: SteppedClock;
// Short, for the sockets of plugins.
let directory: string;
let driver: Plugin;
let ownPlugin: Server | undefined;

beforeEach(async () => {
  directory = mkdtempSync(join(tmpdir(), "nkg-"));
  mkdirSync(join(directory, "reg"));
  cluster = await startCluster();
  clock = new SteppedClock();
  const flags = {
    devicesKubeletPluginEnabled: "true",
    devicesKubeletPluginRegistryDirectory: join(directory, "reg"),
    devicesKubeletPluginCdiDirectory: join(directory, "cdi"),
    devicesMinWriteInterval: "0s",
    devicesWipeDelay: "100ms",
  };
  agent = await startAgent(cluster, flags, undefined, clock);
  kubelet = new DraKubelet(join(directory, "reg"));
  driver = serve();
  await kubelet.untilRegistered(DRIVER);
});

afterEach(async () => {
  kubelet[Symbol.dispose]();
  ownPlugin?.forceShutdown();
  ownPlugin = undefined;
  await agent.stop();
  await driver.stop();
  await cluster.stop();
  rmSync(directory, { recursive: true, force: true });
});

function serve(ownKubeletPlugin = false, problem?: string): Plugin {
  return serveDeviceDriver({
    name: DRIVER,
    socketDir: agent.pluginDir,
    async *devices() {
      yield [{ devices: [{ name: "device-0" }] }];
    },
    ...(ownKubeletPlugin
      ? { ownKubeletPlugin }
      : {
          prepare: ({ devices }) => {
            if (problem !== undefined) throw new Error(problem);
            return devices.map(({ request, pool, device }) => ({
              request,
              pool,
              device,
              edits: { env: { DEVICE: device } },
            }));
          },
          unprepare: () => {},
        }),
  });
}

function allocateClaim() {
  const { metadata } = cluster.server.store.put({
    apiVersion: "resource.k8s.io/v1",
    kind: "ResourceClaim",
    metadata: { name: "of-a-pod", namespace: "default" },
    spec: {},
    status: {
      allocation: {
        devices: { results: [{ request: "req", driver: DRIVER, pool: NODE, device: "device-0" }] },
      },
    },
  });
  return { namespace: "default", name: "of-a-pod", uid: metadata.uid! };
}

async function prepareClaim() {
  const claim = allocateClaim();
  expect((await kubelet.prepare(DRIVER, claim))[claim.uid]).toMatchObject({ error: "" });
  return claim;
}

const row = async () => (await agent.api("devices")).find(({ name }: { name: string }) => name === DRIVER);
const claims = async () =>
  (await agent.api("claims")).find((each: { driver: string }) => each.driver === DRIVER);
const cdiFiles = () => readdirSync(join(directory, "cdi")).filter((name) => name.endsWith(".yaml"));

it("a driver that left while a pod has its device is shown until its last claim ends", async () => {
  const claim = await prepareClaim();
  await driver.stop();
  await eventually(async () =>
    expect(await row()).toMatchObject({
      isRegistered: false,
      slices: [],
      error: expect.stringContaining("claims that still have devices of it: 1"),
    }),
  );
  expect(await agent.api(`devices/list?driver=${DRIVER}`)).toEqual({ items: [] });
  expect((await kubelet.unprepare(DRIVER, claim))[claim.uid]).toEqual({ error: "" });
  await eventually(async () =>
    expect(await row()).toMatchObject({
      error: expect.stringContaining("that it unprepares when it registers again: 1"),
    }),
  );
  driver = serve();
  await eventually(async () => expect((await claims())?.claims).toEqual([]));
});

it.each([
  ["and still reports its devices to the agent", true],
  ["and is not the agent's any more", false],
])(
  "a driver that changes to a plugin of its own, %s: record and CDI file end with the claim",
  async (_, isReporting) => {
    await prepareClaim();
    await driver.stop();
    if (isReporting) driver = serve(true);
    else {
      ownPlugin = createServer();
      ownPlugin.add(RegistrationDefinition, {
        getInfo: async () => ({
          type: "DRAPlugin",
          name: DRIVER,
          endpoint: "",
          supportedVersions: ["v1.DRAPlugin"],
        }),
        notifyRegistrationStatus: async () => ({}),
      });
      await ownPlugin.listen(`unix:${join(directory, "reg", "own.sock")}`);
    }
    await until("it is left alone", async () => {
      clock.advance(5_000);
      return (await claims())?.kubelet === "ownPlugin";
    });
    await until("the agent's socket is removed", () =>
      kubelet.sockets().every((name) => !name.startsWith("nodekeeper-")),
    );
    // The pod still runs: its containers are started again with the file.
    expect(await claims()).toMatchObject({ claims: [{ name: "of-a-pod", state: "prepared" }] });
    expect(cdiFiles()).toHaveLength(1);
    cluster.server.store.delete("resourceclaims.resource.k8s.io", "of-a-pod", "default");
    await until("record and file are removed", async () => {
      clock.advance(5_000);
      return ((await claims())?.claims ?? []).length === 0 && cdiFiles().length === 0;
    });
  },
);

it("a claim that a failed call may have prepared is kept while its driver has a plugin of its own", async () => {
  await driver.stop();
  driver = serve(false, "no power");
  const claim = allocateClaim();
  // As the kubelet does: a driver that is not connected is asked again.
  await until("the driver's call has failed", async () =>
    (await kubelet.prepare(DRIVER, claim))[claim.uid]?.error?.includes("no power"),
  );
  await driver.stop();
  driver = serve(true);
  await until("it is left alone", async () => (await claims())?.kubelet === "ownPlugin");
  await until("the agent's socket is removed", () => {
    clock.advance(5_000);
    return kubelet.sockets().every((name) => !name.startsWith("nodekeeper-"));
  });
  expect(await claims()).toMatchObject({ claims: [{ name: "of-a-pod", state: "preparing" }] });
  cluster.server.store.delete("resourceclaims.resource.k8s.io", "of-a-pod", "default");
  await until("its record is removed", async () => {
    clock.advance(5_000);
    return ((await claims())?.claims ?? []).length === 0;
  });
});
