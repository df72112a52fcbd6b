import { readdirSync } from "node:fs";
import { join } from "node:path";
import { NodekeeperError, silentLogger } from "@nodekeeper/core/lib";
import { afterEach, beforeEach, expect, it } from "vitest";
import type { Allocation, DeviceIdentity } from "./allocation.ts";
import { CdiFolder } from "./cdi-folder.ts";
import type { ClaimReference } from "./claim-reader.ts";
import { HostFiles } from "./host-files.ts";
import { Preparation } from "./preparation.ts";
import { ClaimWorld, DRIVER, NODE } from "./testing/claim-world.ts";

const never = new AbortController().signal;

let world: ClaimWorld;
let calls: string[];
let isConnected: boolean;
let isFailing: boolean;

beforeEach(() => {
  world = new ClaimWorld();
  calls = [];
  isConnected = true;
  isFailing = false;
});
afterEach(() => world[Symbol.dispose]());

function preparationIn(boot: string) {
  const records = world.records(boot);
  const client = {
    prepare: async ({ name }: ClaimReference, { devices }: Allocation) => {
      calls.push(`prepare ${name}: ${devices.map(({ device }) => device)}`);
      const edits = { env: ["A=b"], deviceNodes: [], mounts: [], hooks: [] };
      return { devices: devices.map((device) => ({ ...device, cdiDeviceIds: [], edits })) };
    },
    unprepare: async ({ name }: ClaimReference, devices: readonly DeviceIdentity[]) => {
      if (isFailing) throw new NodekeeperError("unavailable", "out of order");
      calls.push(`unprepare ${name}: ${devices.map(({ device }) => device)}`);
    },
  };
  const preparation = new Preparation({
    reader: world.reader,
    records,
    folder: new CdiFolder(join(world.folder, "cdi")),
    host: new HostFiles({ root: "/", allowed: ["/"] }),
    connected: () => (isConnected ? { client } : undefined),
    onLeft: () => {},
    log: silentLogger,
  });
  return { records, preparation };
}

const files = () => readdirSync(join(world.folder, "cdi"));

it("a device is unprepared for the claim that had it before it is prepared for the next one", async () => {
  const { preparation } = preparationIn("boot-1");
  const first = world.claim("first", "gpu-0");
  await preparation.prepare(DRIVER, first, never);
  isConnected = false;
  await preparation.unprepare(DRIVER, first, never);
  world.deleteClaim(first);
  const second = world.claim("second", "gpu-0");
  isConnected = true;
  isFailing = true;
  await expect(preparation.prepare(DRIVER, second, never)).rejects.toThrow(
    "a device is not unprepared yet for ResourceClaim default/first, which had it before: out of order",
  );
  isFailing = false;
  await preparation.prepare(DRIVER, second, never);
  expect(calls).toEqual(["prepare first: gpu-0", "unprepare first: gpu-0", "prepare second: gpu-0"]);
  // The kubelet's late call does not count for the device.
  await preparation.unprepare(DRIVER, first, never);
  expect(calls.at(-1)).toBe("unprepare first: ");
});

it("also where the kubelet never unprepared it, as for a pod that was deleted by force", async () => {
  const { preparation } = preparationIn("boot-1");
  const first = world.claim("first", "gpu-0", "gpu-1");
  await preparation.prepare(DRIVER, first, never);
  world.deleteClaim(first);
  await preparation.prepare(DRIVER, world.claim("second", "gpu-1"), never);
  expect(calls.slice(1)).toEqual(["unprepare first: gpu-0,gpu-1", "prepare second: gpu-1"]);
});

it("a claim that exists keeps a device that another has, too: one of them is for monitoring", async () => {
  const { preparation } = preparationIn("boot-1");
  await preparation.prepare(DRIVER, world.claim("monitoring", "gpu-0"), never);
  await preparation.prepare(DRIVER, world.claim("work", "gpu-0"), never);
  expect(calls).toEqual(["prepare monitoring: gpu-0", "prepare work: gpu-0"]);
});

it("two claims that swapped their devices are prepared at once", async () => {
  const { preparation } = preparationIn("boot-1");
  const claims = [world.claim("a", "gpu-0"), world.claim("b", "gpu-1")];
  for (const claim of claims) await preparation.prepare(DRIVER, claim, never);
  world.claim("a", "gpu-1");
  world.claim("b", "gpu-0");
  await Promise.all(claims.map((claim) => preparation.prepare(DRIVER, claim, never)));
  expect(calls).toContain("prepare a: gpu-1");
  expect(calls).toContain("prepare b: gpu-0");
  expect(files()).toHaveLength(2);
});

it.each([
  ["other devices: the recorded ones are unprepared first", "boot-1", "gpu-1", ["unprepare claim: gpu-0"]],
  ["the same devices: tried again", "boot-1", "gpu-0", []],
  ["other devices after a reboot: nothing is left of the recorded ones", "boot-0", "gpu-1", []],
])("a preparation that was not completed, and now %s", async (_, boot, device, before) => {
  const claim = world.claim("claim", device);
  const recorded = [{ request: "req", pool: NODE, device: "gpu-0", shareId: "", cdiDeviceIds: [] }];
  world.records(boot).save(DRIVER, claim, "preparing", { devices: recorded, cdi: "" });
  await preparationIn("boot-1").preparation.prepare(DRIVER, claim, never);
  expect(calls).toEqual([...before, `prepare claim: ${device}`]);
});

it.each([
  ["the same devices: prepared again", ["gpu-0"], ["prepare claim: gpu-0"], 1],
  [
    "other devices: what was recorded is unprepared, and nothing is prepared",
    ["gpu-7"],
    ["unprepare claim: gpu-0"],
    0,
  ],
  ["no claim any more: unprepared", [], ["unprepare claim: gpu-0"], 0],
])("after a reboot, %s", async (_, devices, expected, remaining) => {
  const claim = world.claim("claim", "gpu-0");
  await preparationIn("boot-1").preparation.prepare(DRIVER, claim, never);
  if (devices.length > 0) world.claim("claim", ...devices);
  else world.deleteClaim(claim);
  calls = [];
  const { preparation, records } = preparationIn("boot-2");
  await preparation.reconcile(DRIVER, claim.uid, never);
  expect(calls).toEqual(expected);
  expect(records.of(DRIVER)).toHaveLength(remaining);
  expect(files()).toHaveLength(remaining);
});

it("unprepares a claim that has ended, and no other", async () => {
  const { preparation, records } = preparationIn("boot-1");
  const claim = world.claim("claim", "gpu-0");
  await preparation.prepare(DRIVER, claim, never);
  expect(await preparation.unprepareEnded(DRIVER, claim.uid, never)).toBe(false);
  expect(records.of(DRIVER)).toHaveLength(1);
  world.deleteClaim(claim);
  expect(await preparation.unprepareEnded(DRIVER, claim.uid, never)).toBe(true);
  expect(records.of(DRIVER)).toEqual([]);
  expect(files()).toEqual([]);
});
