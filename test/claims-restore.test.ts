import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import {
  type ClaimToPrepare,
  type DeviceDriverOptions,
  type Plugin,
  type RecordedClaim,
  serveDeviceDriver,
} from "@nodekeeper/sdk";
import { until } from "@nodekeeper/testing";
import { beforeEach, expect, it } from "vitest";
import { useClaimsNode } from "./support/claims-node.ts";

const DRIVER = "gpu.example.com";
const NODE = "worker-1";
const node = useClaimsNode({ devicesMinWriteInterval: "0s" });

beforeEach(() => node.start());

const spec = {
  devices: {
    requests: [
      {
        name: "gpu",
        exactly: {
          deviceClassName: "gpus",
          allocationMode: "ExactCount",
          count: 2,
          selectors: [{ cel: { expression: "true" } }],
          capacity: { requests: { memory: "4Gi" } },
        },
      },
      { name: "net", firstAvailable: [{ name: "fast", deviceClassName: "nics", allocationMode: "All" }] },
    ],
  },
};

/** The requests of `spec` as a driver gets them. */
const requests = [
  {
    name: "gpu",
    deviceClassName: "gpus",
    allocationMode: "ExactCount",
    count: 2,
    adminAccess: false,
    selectors: ["true"],
    capacity: { memory: "4Gi" },
  },
  {
    name: "net/fast",
    deviceClassName: "nics",
    allocationMode: "All",
    count: 0,
    adminAccess: false,
    selectors: [],
    capacity: {},
  },
];

function claim(name: string, device: string) {
  const result = { request: "gpu", driver: DRIVER, pool: NODE, device, bindingConditions: ["Ready"] };
  const stored = node.cluster.server.store.put({
    apiVersion: "resource.k8s.io/v1",
    kind: "ResourceClaim",
    metadata: { name, namespace: "default", labels: { team: "a" }, annotations: { note: "b" } },
    spec,
    status: {
      allocation: { devices: { results: [result] } },
      reservedFor: [{ resource: "pods", name: "pod-of-claim", uid: "11111111-2222-3333-4444-555555555555" }],
    },
  });
  return { namespace: "default", name, uid: stored.metadata.uid! };
}

/** Serves a driver whose edits name its life, and counts what it is asked. */
async function serve(life: string, options: Partial<DeviceDriverOptions> = {}) {
  const prepared: ClaimToPrepare[] = [];
  const driver: Plugin = serveDeviceDriver({
    name: DRIVER,
    socketDir: node.agent.pluginDir,
    async *devices() {
      yield [{ devices: [{ name: "device-0" }, { name: "device-1" }] }];
    },
    prepare(wanted) {
      prepared.push(wanted);
      return wanted.devices.map(({ request, pool, device }) => ({
        request,
        pool,
        device,
        edits: { env: { LIFE: life } },
      }));
    },
    unprepare() {},
    ...options,
  });
  node.drivers.push(driver);
  await driver.ready;
  return Object.assign(driver, { prepared });
}

const cdiTexts = () => {
  const directory = join(node.directory, "cdi");
  return readdirSync(directory)
    .filter((name) => name.endsWith(".yaml"))
    .map((name) => readFileSync(join(directory, name), "utf8"));
};

const problemOf = async () =>
  (await node.agent.api("claims")).find(({ driver }: { driver: string }) => driver === DRIVER)?.problem;

it("a driver that restarts is told its claims with all that prepare had, and what it has lost is prepared again", async () => {
  const first = await serve("one");
  const [kept, lost] = [claim("kept", "device-0"), claim("lost", "device-1")];
  for (const each of [kept, lost]) await node.kubelet.prepare(DRIVER, each);
  await first.stop();
  const told: RecordedClaim[][] = [];
  const second = await serve("two", {
    restore(claims) {
      told.push(claims);
      return [lost.uid];
    },
  });
  await until("prepared again", () => cdiTexts().some((text) => text.includes("LIFE=two")));
  expect(first.prepared[0]).toMatchObject({
    labels: { team: "a" },
    annotations: { note: "b" },
    requests,
    pods: [{ namespace: "default" }],
    devices: [{ bindingConditions: ["Ready"] }],
  });
  expect(told).toHaveLength(1);
  expect(told[0]).toEqual(first.prepared.map((each) => ({ ...each, isPrepared: true })));
  expect(second.prepared).toEqual([first.prepared[1]]);
  const files = cdiTexts();
  expect(files).toHaveLength(2);
  expect(files.find((text) => text.includes(kept.uid))).toContain("LIFE=one");
  // The kubelet's next call is answered from the record.
  await node.kubelet.prepare(DRIVER, lost);
  expect(second.prepared).toHaveLength(1);
});

it("what is not prepared again yet when the agent ends is prepared by the next agent", async () => {
  const first = await serve("one");
  const lost = claim("lost", "device-0");
  await node.kubelet.prepare(DRIVER, lost);
  await first.stop();
  let isAble = false;
  await serve("two", {
    restore: () => (isAble ? [] : [lost.uid]),
    prepare({ devices }) {
      if (!isAble) throw new Error("the firmware is busy");
      return devices.map(({ request, pool, device }) => ({
        request,
        pool,
        device,
        edits: { env: { LIFE: "two" } },
      }));
    },
  });
  await until("failing", async () => (await problemOf())?.includes("the firmware is busy"));
  // No container starts with what is no longer there.
  expect(cdiTexts()).toEqual([]);
  await node.agent.stop();
  isAble = true;
  await node.start();
  await until("prepared again", () => cdiTexts().some((text) => text.includes("LIFE=two")));
});

it("an answer with a claim that was not sent is refused and shown, and changes nothing", async () => {
  const first = await serve("one");
  await node.kubelet.prepare(DRIVER, claim("kept", "device-0"));
  await first.stop();
  const second = await serve("two", { restore: () => ["11111111-0000-0000-0000-000000000000"] });
  await until("refused", async () =>
    (await problemOf())?.includes(
      'RestoreClaims: it asks to prepare claim "11111111-0000-0000-0000-000000000000" again, which it does not have',
    ),
  );
  expect(cdiTexts()).toMatchObject([expect.stringContaining("LIFE=one")]);
  expect(second.prepared).toEqual([]);
});
