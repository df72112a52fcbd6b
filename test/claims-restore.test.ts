import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import {
  type ClaimToPrepare,
  type ClaimToUnprepare,
  type DeviceDriverOptions,
  type Plugin,
  type RecordedClaim,
  serveDeviceDriver,
} from "@nodekeeper/sdk";
import { until } from "@nodekeeper/testing/until";
import { beforeEach, expect, it } from "vitest";
import { useClaimsNode } from "./support/claims-node.ts";
import { NODE } from "./support/cluster.ts";

const DRIVER = "accelerators.example.com";
const node = useClaimsNode();

beforeEach(() => node.start());

interface Calls {
  /** Names of calls with the claim's name, in order. */
  order: string[];
  restored: RecordedClaim[][];
  prepared: ClaimToPrepare[];
  unprepared: ClaimToUnprepare[];
}

/** Serves a driver whose edits name the instance, as a container would see it. */
async function serve(instance: string, options: Partial<DeviceDriverOptions> = {}): Promise<Plugin & Calls> {
  const calls: Calls = { order: [], restored: [], prepared: [], unprepared: [] };
  const { prepare = () => {}, restore = () => [], ...rest } = options;
  const driver = serveDeviceDriver({
    name: DRIVER,
    socketDir: node.agent.pluginDir,
    async *devices() {
      yield [{ devices: [{ name: "device-0" }, { name: "device-1" }] }];
    },
    async prepare(wanted, signal) {
      calls.order.push(`prepare ${wanted.name}`);
      calls.prepared.push(wanted);
      await prepare(wanted, signal);
      return wanted.devices.map(({ request, pool, device }) => ({
        request,
        pool,
        device,
        edits: { env: { INSTANCE: instance } },
      }));
    },
    unprepare(ended) {
      calls.order.push(`unprepare ${ended.name}`);
      calls.unprepared.push(ended);
    },
    restore(claims, signal) {
      calls.order.push("restore");
      calls.restored.push(claims);
      return restore(claims, signal);
    },
    ...rest,
  });
  node.drivers.push(driver);
  await driver.ready;
  return Object.assign(driver, calls);
}

const POD = { name: "pod-of-claim", uid: "11111111-2222-3333-4444-555555555555" };

function claim(name: string, device = "device-0") {
  const { metadata } = node.cluster.server.store.put({
    apiVersion: "resource.k8s.io/v1",
    kind: "ResourceClaim",
    metadata: { name, namespace: "default", labels: { team: "a" }, annotations: { "example.com/note": "b" } },
    spec: {
      devices: {
        requests: [
          {
            name: "req",
            exactly: { deviceClassName: "accelerator", allocationMode: "ExactCount", count: 1 },
          },
          { name: "other", firstAvailable: [{ name: "small", deviceClassName: "other.example.com" }] },
        ],
      },
    },
    status: {
      allocation: {
        devices: {
          results: [
            {
              request: "req",
              driver: DRIVER,
              pool: NODE,
              device,
              bindingConditions: ["example.com/ready"],
              bindingFailureConditions: ["example.com/failed"],
            },
          ],
          config: [
            { source: "FromClaim", requests: [], opaque: { driver: DRIVER, parameters: { mode: "shared" } } },
          ],
        },
      },
      reservedFor: [{ resource: "pods", ...POD }],
    },
  });
  return { namespace: "default", name, uid: metadata.uid! };
}

function pod(fields: { uid?: string } = {}) {
  node.cluster.server.store.put({
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name: POD.name, namespace: "default", uid: POD.uid, ...fields },
    spec: { nodeName: NODE, serviceAccountName: "trainer", containers: [{ name: "main", image: "a" }] },
  });
}

/** The environment that a container would get now of the CDI files. */
function environment(): string[] {
  const directory = join(node.directory, "cdi");
  if (!existsSync(directory)) return [];
  return readdirSync(directory)
    .filter((name) => name.endsWith(".yaml"))
    .flatMap((name) => {
      const text = readFileSync(join(directory, name), "utf8");
      const { devices } = JSON.parse(text.slice(text.indexOf("\n")));
      return devices.flatMap((device: { containerEdits: { env: string[] } }) => device.containerEdits.env);
    });
}

const status = async () =>
  (await node.agent.api("claims")).find(({ driver }: { driver: string }) => driver === DRIVER);
const isDisconnected = async () => (await status())?.isPreparing === false;
const everyPrepared = (claims: RecordedClaim[]) =>
  claims.filter(({ isPrepared }) => isPrepared).map(({ uid }) => uid);

async function preparedBy(driver: Plugin, ...wanted: ReturnType<typeof claim>[]) {
  for (const each of wanted)
    expect((await node.kubelet.prepare(DRIVER, each))[each.uid]).toMatchObject({ error: "" });
  await driver.stop();
  await until("disconnected", isDisconnected);
}

const details = {
  namespace: "default",
  labels: { team: "a" },
  annotations: { "example.com/note": "b" },
  requests: [
    {
      name: "req",
      deviceClassName: "accelerator",
      allocationMode: "ExactCount",
      count: 1,
      adminAccess: false,
      selectors: [],
      capacity: {},
    },
    expect.objectContaining({ name: "other/small", deviceClassName: "other.example.com" }),
  ],
};
const devices = [
  expect.objectContaining({
    device: "device-0",
    bindingConditions: ["example.com/ready"],
    bindingFailureConditions: ["example.com/failed"],
    configuration: [
      { source: "FromClaim", parameters: { mode: "shared" }, parametersText: '{"mode":"shared"}' },
    ],
  }),
];

it("prepare, restore and unprepare have all of the claim, the last two of the record", async () => {
  pod();
  const first = await serve("first");
  const wanted = claim("running");
  await preparedBy(first, wanted);
  const all = { ...details, pods: [{ ...POD, namespace: "default", serviceAccount: "trainer" }], devices };
  // Nothing was recorded.
  expect(first.restored).toEqual([]);
  expect(first.prepared).toMatchObject([all]);
  node.cluster.server.store.delete("resourceclaims.resource.k8s.io", "running", "default");
  await node.agent.stop();
  await node.start();
  const second = await serve("second");
  await until("restored", () => second.restored.length === 1);
  expect(second.restored).toMatchObject([[{ ...all, isPrepared: true }]]);
  await until("registered", () => node.kubelet.untilRegistered(DRIVER).then(() => true));
  await node.kubelet.unprepare(DRIVER, wanted);
  expect(second.unprepared).toMatchObject([all]);
});

it.each([
  ["does not exist", () => {}],
  ["was replaced by another one of its name", () => pod({ uid: "another" })],
  [
    "may not be read",
    () => {
      pod();
      node.cluster.fault = ({ path }) => (path.endsWith(`/pods/${POD.name}`) ? { status: 403 } : undefined);
    },
  ],
])("a claim whose pod %s is prepared, without a service account", async (_, given) => {
  given();
  const driver = await serve("first");
  const wanted = claim("running");
  expect((await node.kubelet.prepare(DRIVER, wanted))[wanted.uid]).toMatchObject({ error: "" });
  expect(driver.prepared[0]!.pods).toEqual([{ ...POD, namespace: "default" }]);
});

it("a driver that lost its memory has its claims prepared again, and confirms the others", async () => {
  const [lost, kept] = [claim("lost"), claim("kept", "device-1")];
  await preparedBy(await serve("first"), lost, kept);
  const before = await node.kubelet.prepare(DRIVER, lost);
  const second = await serve("second", { restore: () => [lost.uid] });
  await until("prepared again", () => environment().includes("INSTANCE=second"));
  expect(second.order).toEqual(["restore", "prepare lost"]);
  expect(environment().sort()).toEqual(["INSTANCE=first", "INSTANCE=second"]);
  // The kubelet's answer stays valid, and is not made again.
  expect(await node.kubelet.prepare(DRIVER, lost)).toEqual(before);
  expect(second.order).toEqual(["restore", "prepare lost"]);
});

it("no container starts with a lost claim before it is prepared again, and failures are repeated", async () => {
  const lost = claim("lost");
  await preparedBy(await serve("first"), lost);
  let isFailing = true;
  const second = await serve("second", {
    restore: everyPrepared,
    prepare: () => {
      if (isFailing) throw new Error("the daemon does not start");
      return [];
    },
  });
  await until("failed", async () => (await status())?.problem?.includes("the daemon does not start"));
  expect(environment()).toEqual([]);
  expect((await node.kubelet.prepare(DRIVER, lost))[lost.uid]!.error).toContain("the daemon does not start");
  expect((await status()).claims).toMatchObject([{ state: "prepared" }]);
  isFailing = false;
  await until("prepared again", () => environment().includes("INSTANCE=second"));
  expect(second.order.filter((call) => call === "restore")).toHaveLength(1);
});

it("an agent that ends between restore and prepare prepares again, also if the driver then confirms", async () => {
  const lost = claim("lost");
  await preparedBy(await serve("first"), lost);
  const second = await serve("second", {
    restore: everyPrepared,
    prepare: () => {
      throw new Error("not yet");
    },
  });
  await until("asked", () => second.order.includes("prepare lost"));
  await node.agent.stop();
  await second.stop();
  await node.start();
  expect(environment()).toEqual([]);
  const third = await serve("third");
  await until("prepared again", () => environment().includes("INSTANCE=third"));
  expect(third.restored).toMatchObject([[{ uid: lost.uid, isPrepared: false }]]);
});

it("UIDs of no claim are refused and named, the others are prepared again", async () => {
  const lost = claim("lost");
  await preparedBy(await serve("first"), lost);
  await serve("second", { restore: () => ["no-such-uid", lost.uid] });
  await until("prepared again", () => environment().includes("INSTANCE=second"));
  expect((await status()).problem).toContain(`was not sent a claim with UID "no-such-uid"`);
});

it("a driver that fails to restore is asked again, and has no other call before", async () => {
  const wanted = claim("running");
  await preparedBy(await serve("first"), wanted);
  let isFailing = true;
  const second = await serve("second", {
    restore: () => {
      if (isFailing) throw new Error("no firmware");
      return [];
    },
  });
  await until("failed", async () => (await status())?.problem?.includes("no firmware"));
  const next = claim("next", "device-1");
  expect((await node.kubelet.prepare(DRIVER, next))[next.uid]!.error).toContain(
    "has not confirmed its prepared claims: no firmware",
  );
  expect(second.prepared).toEqual([]);
  isFailing = false;
  await until("confirmed", async () => (await status())?.problem === undefined);
  expect((await node.kubelet.prepare(DRIVER, next))[next.uid]).toMatchObject({ error: "" });
  expect(second.order.at(-1)).toBe("prepare next");
});

it("calls of the kubelet wait while a driver restores, and other drivers do not", async () => {
  const mayEnd = Promise.withResolvers<string[]>();
  await preparedBy(await serve("first"), claim("running", "device-1"));
  await node.agent.stop();
  await node.start();
  const hanging = await serve("second", { restore: () => mayEnd.promise });
  await until("asked", () => hanging.order.length === 1);
  // A driver without claims is not asked.
  const own = await serve("other", { name: "other.example.com" });
  await node.kubelet.untilRegistered("other.example.com");
  expect(own.order).toEqual([]);
  await node.kubelet.untilRegistered(DRIVER);
  const wanted = claim("early");
  const answer = node.kubelet.prepare(DRIVER, wanted);
  expect(hanging.order).toEqual(["restore"]);
  mayEnd.resolve([]);
  expect((await answer)[wanted.uid]).toMatchObject({ error: "" });
  expect(hanging.order).toEqual(["restore", "prepare early"]);
});

it("a claim that an older agent recorded is restored, with its details once it was read again", async () => {
  pod();
  const wanted = claim("running");
  await preparedBy(await serve("first"), wanted);
  await node.agent.stop();
  const [file] = readdirSync(node.agent.stateDir).filter((name) => name.endsWith(".db"));
  const database = new DatabaseSync(join(node.agent.stateDir, file!));
  database.exec("ALTER TABLE claim DROP COLUMN details");
  database.close();
  await node.start();
  const second = await serve("second", { restore: everyPrepared });
  await until("prepared again", () => environment().includes("INSTANCE=second"));
  // With details if its pod was seen before the driver.
  expect(second.restored).toMatchObject([[{ uid: wanted.uid, isPrepared: true }]]);
  expect(second.prepared).toMatchObject([{ uid: wanted.uid, labels: { team: "a" } }]);
});
