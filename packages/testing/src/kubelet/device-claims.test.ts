import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DRAPluginDefinition } from "@nodekeeper/core/gen/dra/v1/api.ts";
import { RegistrationDefinition } from "@nodekeeper/core/gen/pluginregistration/v1/api.ts";
import { silentLogger, systemClock } from "@nodekeeper/core/lib";
import { createServer } from "nice-grpc";
import { afterEach, expect, it } from "vitest";
import { createDevApiServer } from "../apiserver/dev-api-server.ts";
import type { DevStore } from "../apiserver/dev-store.ts";
import { until } from "../until.ts";
import { heldDevices } from "./claims.ts";
import { DeviceClaims } from "./device-claims.ts";

const DRIVER = "gpu.example.com";
const NODE = "node-1";
const CLAIMS = "resourceclaims.resource.k8s.io";

const ends: (() => Promise<unknown> | unknown)[] = [];
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end();
});

/** The DRA plugin of a driver, which records what it is asked. */
async function servePlugin(directory: string): Promise<string[]> {
  const calls: string[] = [];
  const server = createServer();
  server.add(RegistrationDefinition, {
    getInfo: async () => ({
      type: "DRAPlugin",
      name: DRIVER,
      endpoint: "",
      supportedVersions: ["v1.DRAPlugin"],
    }),
    notifyRegistrationStatus: async () => ({}),
  });
  const noteAll = (verb: string, claims: { name: string; uid: string }[]) => {
    for (const { name } of claims) calls.push(`${verb} ${name}`);
    return Object.fromEntries(claims.map(({ uid }) => [uid, { error: "" }]));
  };
  server.add(DRAPluginDefinition, {
    nodePrepareResources: async ({ claims }) => {
      const answers = Object.entries(noteAll("prepare", claims));
      return { claims: Object.fromEntries(answers.map(([uid, each]) => [uid, { ...each, devices: [] }])) };
    },
    nodeUnprepareResources: async ({ claims }) => ({ claims: noteAll("unprepare", claims) }),
  });
  await server.listen(`unix:${join(directory, "gpu.sock")}`);
  ends.push(() => server.forceShutdown());
  return calls;
}

async function setUp(devices: object[]) {
  const directory = mkdtempSync(join(tmpdir(), "nk-claims-"));
  ends.push(() => rmSync(directory, { recursive: true, force: true }));
  const { store } = createDevApiServer({ clock: systemClock, log: silentLogger });
  store.put({
    apiVersion: "resource.k8s.io/v1",
    kind: "ResourceSlice",
    metadata: { name: "slice" },
    spec: {
      driver: DRIVER,
      nodeName: NODE,
      pool: { name: "pool", generation: 1, resourceSliceCount: 1 },
      devices,
    },
  });
  const calls = await servePlugin(directory);
  const claims = new DeviceClaims({
    store,
    nodeName: NODE,
    registryDirectory: directory,
    templates: [{ name: "one", driver: DRIVER, count: 1 }],
    clock: systemClock,
    log: silentLogger,
  });
  const stop = new AbortController();
  const running = claims.run(stop.signal);
  ends.push(async () => {
    stop.abort();
    await running;
  });
  return { store, calls, claims };
}

function addPod(store: DevStore, name: string): void {
  store.put({
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name, namespace: "default" },
    spec: {
      nodeName: NODE,
      containers: [{ name: "main", image: "images.example/a:1" }],
      resourceClaims: [{ name: "gpu", resourceClaimTemplateName: "one" }],
    },
    status: { phase: "Running" },
  });
}

it("pods get devices of their own, have them prepared, and give them back when they are deleted", async () => {
  const tainted = { name: "gpu-0", taints: [{ key: "k", effect: "NoSchedule" }] };
  const { store, calls, claims } = await setUp([tainted, { name: "gpu-1" }]);
  addPod(store, "first");
  await until("the claim is prepared", () => calls.includes("prepare first-gpu"));
  addPod(store, "second");
  const held = () => store.list(CLAIMS).flatMap((claim) => heldDevices(claim).map(({ device }) => device));
  expect(held()).toEqual(["gpu-1"]);
  await until("PodResources has the device", () =>
    claims.podResources().some(({ name, containers }) => {
      const [claim] = containers[0]!.dynamicResources;
      return name === "first" && claim?.claimResources[0]?.deviceName === "gpu-1";
    }),
  );

  store.delete("pods", "first", "default");
  await until("the second pod has the device", () => calls.includes("prepare second-gpu"));
  expect(calls).toEqual(["prepare first-gpu", "unprepare first-gpu", "prepare second-gpu"]);
  expect(held()).toEqual(["gpu-1"]);
  expect(store.list(CLAIMS).map(({ metadata }) => metadata.name)).toEqual(["second-gpu"]);
});
