import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import {
  type ContainerEdits,
  type DeepPartial,
  PrepareDevicesResponse,
} from "@nodekeeper/core/gen/nodekeeper/devices/v1alpha2/preparation.ts";
import { NodekeeperError, silentLogger, stopped } from "@nodekeeper/core/lib";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import type { Allocation } from "./allocation.ts";
import { CdiDirectory } from "./cdi-directory.ts";
import { checkFile, specOf } from "./cdi-file.ts";
import { ClaimAllocations } from "./claim-allocations.ts";
import type { ClaimReference } from "./claim-reader.ts";
import type { RecordedClaim } from "./claim-records.ts";
import type { PodReader } from "./context.ts";
import type { DeviceReader } from "./device-metadata.ts";
import { HostFiles } from "./host-files.ts";
import { Preparation } from "./preparation.ts";
import { ClaimWorld, DRIVER, hastyClock, recordedDevice } from "./testing/claim-world.ts";

const never = new AbortController().signal;

let world: ClaimWorld;
let calls: string[];
let isConnected: boolean;
let isPreparing: boolean;
let isFailing: boolean;
let isLifecycleOn: boolean;
let left: number;
let edits: DeepPartial<ContainerEdits>;
let hostRoot: string;
// What happens while the driver is called, and while the runtime is read.
let duringCall: (call: string) => unknown;
let duringRead: () => unknown;

beforeEach(() => {
  world = new ClaimWorld();
  calls = [];
  isConnected = true;
  isPreparing = true;
  isFailing = false;
  isLifecycleOn = true;
  left = 0;
  edits = { env: ["A=b"] };
  hostRoot = "/";
  duringCall = () => {};
  duringRead = () => {};
});
afterEach(() => world[Symbol.dispose]());

function preparationIn(boot: string, reportedDevice?: DeviceReader, isProven = true) {
  const records = world.records(boot, isProven);
  const clock = hastyClock();
  const client = {
    prepare: async ({ name }: ClaimReference, { devices }: Allocation) => {
      calls.push(`prepare ${name}: ${devices.map(({ device }) => device)}`);
      await duringCall(calls.at(-1)!);
      return PrepareDevicesResponse.fromPartial({ devices: devices.map((device) => ({ ...device, edits })) });
    },
    unprepare: async ({ name }: ClaimReference, { devices }: Pick<RecordedClaim, "devices">) => {
      if (isFailing) throw new NodekeeperError("unavailable", "out of order");
      calls.push(`unprepare ${name}: ${devices.map(({ device }) => device)}`);
      await duringCall(calls.at(-1)!);
    },
  };
  const reader: PodReader = {
    readNow: async (uid, signal) => {
      await duringRead();
      return await world.pods.readNow(uid, signal);
    },
  };
  const preparation = new Preparation({
    allocations: new ClaimAllocations(world.reader, records),
    records,
    directory: new CdiDirectory(join(world.directory, "cdi"), join(world.directory, "metadata")),
    host: new HostFiles({ root: hostRoot, allowed: ["/"] }),
    drivers: {
      get: () => ({
        connection: isConnected ? { uid: 0, client: isPreparing ? client : undefined } : undefined,
      }),
    },
    reportedDevice,
    problems: { preparationFailed: () => {} },
    queue: { add: () => void left++, addAfter: () => {} },
    pods: isLifecycleOn ? reader : undefined,
    clock,
    log: silentLogger,
  });
  return { records, preparation, clock };
}

const files = () => readdirSync(join(world.directory, "cdi"));

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

it("without a writable state directory a claim is not released while its driver is disconnected: a restart would forget it", async () => {
  const { preparation, records } = preparationIn("boot-1");
  const claim = world.claim("one", "gpu-0");
  await preparation.prepare(DRIVER, claim, never);
  const isKept = vi.spyOn(records, "isKept", "get").mockReturnValue(false);
  isConnected = false;
  await expect(preparation.unprepare(DRIVER, claim, never)).rejects.toThrow("can't be recorded");
  expect(files()).toHaveLength(1);
  isConnected = true;
  await preparation.unprepare(DRIVER, claim, never);
  expect(calls).toEqual(["prepare one: gpu-0", "unprepare one: gpu-0"]);
  isKept.mockRestore();
});

it("a record that an agent without a writable state directory could not remove answers no kubelet's call", async () => {
  const { preparation } = preparationIn("boot-1");
  const claim = world.claim("one", "gpu-0");
  await preparation.prepare(DRIVER, claim, never);
  const stored = world.store.claims();
  await preparation.unprepare(DRIVER, claim, never);
  for (const record of stored) world.store.save(record);
  const next = preparationIn("boot-1", undefined, false);
  await next.preparation.prepare(DRIVER, claim, never);
  await next.preparation.prepare(DRIVER, claim, never);
  expect(calls).toEqual(["prepare one: gpu-0", "unprepare one: gpu-0", "prepare one: gpu-0"]);
});

it("also where the kubelet never unprepared it, as for a pod that was deleted by force", async () => {
  const { preparation } = preparationIn("boot-1");
  const first = world.claim("first", "gpu-0", "gpu-1");
  await preparation.prepare(DRIVER, first, never);
  world.deleteClaim(first);
  await preparation.prepare(DRIVER, world.claim("second", "gpu-1"), never);
  expect(calls.slice(1)).toEqual(["unprepare first: gpu-0,gpu-1", "prepare second: gpu-1"]);
});

const USED =
  "container main of pod default/pod-of-first uses worker-1/gpu-0 and has not exited: its state in the container runtime is";

it.each(["running", "created", "unknown"] as const)(
  "while a container of the claim that had it is %s, no other claim gets it, and the driver is not called",
  async (state) => {
    const { preparation } = preparationIn("boot-1");
    const first = world.claim("first", "gpu-0");
    await preparation.prepare(DRIVER, first, never);
    world.deleteClaim(first);
    const second = world.claim("second", "gpu-0");
    world.containers.set("pod-of-first", state);
    const before = "a device is not unprepared yet for ResourceClaim default/first, which had it before";
    await expect(preparation.prepare(DRIVER, second, never)).rejects.toThrow(`${before}: ${USED} ${state}`);
    await expect(preparation.unprepare(DRIVER, first, never)).rejects.toThrow(`${USED} ${state}`);
    await expect(preparation.unprepareEnded(DRIVER, first.uid, never)).rejects.toThrow(`${USED} ${state}`);
    await expect(preparation.reconcile(DRIVER, first.uid, never)).rejects.toThrow(`${USED} ${state}`);
    expect(calls).toEqual(["prepare first: gpu-0"]);
    // No container can be created with it any more, and the claim is reconciled until it is unprepared: the first failure
    // has it reconciled, and the queue's backoff paces what follows.
    expect(files()).toEqual([]);
    expect(left).toBe(1);
    world.containers.set("pod-of-first", "exited");
    await preparation.reconcile(DRIVER, first.uid, never);
    await preparation.prepare(DRIVER, second, never);
    expect(calls.slice(1)).toEqual(["unprepare first: gpu-0", "prepare second: gpu-0"]);
  },
);

it("pods that a claim is no longer reserved for end before it is prepared for the next ones", async () => {
  const { preparation, records } = preparationIn("boot-1");
  const first = world.claim("first", "gpu-0");
  const departed = { name: "pod-of-first", uid: "earlier" };
  await records.save(DRIVER, first, {
    state: "prepared",
    devices: [recordedDevice("gpu-0")],
    pods: [departed],
    cdi: "",
  });
  world.containers.set("earlier", "running");
  await expect(preparation.prepare(DRIVER, first, never)).rejects.toThrow(`${USED} running`);
  world.containers.delete("earlier");
  await preparation.prepare(DRIVER, first, never);
  expect(records.get(DRIVER, first.uid)?.pods).toEqual([{ name: "pod-of-first", uid: "pod-of-first" }]);
});

it("a call that ends while its claim is being recorded does not call the driver", async () => {
  const { preparation, records } = preparationIn("boot-1");
  const first = world.claim("first", "gpu-0");
  const ending = new AbortController();
  const commit = world.store.together.bind(world.store);
  world.store.together = (work) => {
    commit(work);
    ending.abort(stopped("the kubelet left"));
  };
  const call = { signal: ending.signal, waitUntil: Number.POSITIVE_INFINITY };
  await expect(preparation.prepare(DRIVER, first, never, call)).rejects.toThrow("the kubelet left");
  expect(calls).toEqual([]);
  // It may not be known after a kill that the driver was not called.
  expect(records.get(DRIVER, first.uid)?.state).toBe("preparing");
});

const pod = (name: string) => ({ name, uid: name });

it("a pod that another call recorded while the driver was called stays recorded", async () => {
  const { preparation, records } = preparationIn("boot-1");
  const first = world.claim("first", "gpu-0");
  duringCall = () => records.complete(DRIVER, first.uid, { pods: [pod("later")], devices: [] });
  await preparation.prepare(DRIVER, first, never);
  expect(records.get(DRIVER, first.uid)?.pods).toEqual([pod("pod-of-first"), pod("later")]);
});

it("a pod that another call recorded while departed pods' containers ended stays recorded", async () => {
  const { preparation, records } = preparationIn("boot-1");
  const first = world.claim("first", "gpu-0");
  const pods = [pod("departed"), pod("pod-of-first")];
  await records.save(DRIVER, first, { state: "prepared", devices: [recordedDevice("gpu-0")], pods, cdi: "" });
  duringRead = () => records.complete(DRIVER, first.uid, { pods: [pod("later")], devices: [] });
  await preparation.prepare(DRIVER, first, never);
  expect(records.get(DRIVER, first.uid)?.pods).toEqual([pod("pod-of-first"), pod("later")]);
});

it("a call to unprepare that waits does not unprepare what was prepared meanwhile", async () => {
  const { preparation, records } = preparationIn("boot-1");
  const first = world.claim("first", "gpu-0");
  await preparation.prepare(DRIVER, first, never);
  world.containers.set("pod-of-first", "running");
  let reads = 0;
  duringRead = async () => {
    if (++reads !== 2) return;
    world.containers.delete("pod-of-first");
    await preparation.prepare(DRIVER, first, never);
  };
  await preparation.unprepare(DRIVER, first, never);
  expect(calls).toEqual(["prepare first: gpu-0", "unprepare first: gpu-0", "prepare first: gpu-0"]);
  expect(records.get(DRIVER, first.uid)?.state).toBe("prepared");
});

it("claims that had the devices are unprepared at once, not in turn", async () => {
  const { preparation } = preparationIn("boot-1");
  const holders = [world.claim("a", "gpu-0"), world.claim("b", "gpu-1")];
  for (const holder of holders) {
    await preparation.prepare(DRIVER, holder, never);
    world.deleteClaim(holder);
  }
  const both = Promise.withResolvers<void>();
  let unpreparing = 0;
  duringCall = async (call) => {
    if (!call.startsWith("unprepare")) return;
    if (++unpreparing === holders.length) both.resolve();
    await both.promise;
  };
  await preparation.prepare(DRIVER, world.claim("next", "gpu-0", "gpu-1"), never);
  expect(calls.at(-1)).toBe("prepare next: gpu-0,gpu-1");
});

it("without lifecycle a device is handed on when the kubelet has unprepared it, and not before", async () => {
  isLifecycleOn = false;
  const { preparation } = preparationIn("boot-1");
  const first = world.claim("first", "gpu-0");
  await preparation.prepare(DRIVER, first, never);
  world.deleteClaim(first);
  const second = world.claim("second", "gpu-0");
  await expect(preparation.prepare(DRIVER, second, never)).rejects.toThrow("lifecycle.enabled is false");
  await preparation.unprepare(DRIVER, first, never);
  await preparation.prepare(DRIVER, second, never);
  expect(calls.slice(1)).toEqual(["unprepare first: gpu-0", "prepare second: gpu-0"]);
});

it("a device of a claim that exists is not prepared for another one, in turn or at once", async () => {
  const { preparation } = preparationIn("boot-1");
  const claims = ["a", "b"].map((name) => world.claim(name, "gpu-0"));
  const ends = await Promise.allSettled(claims.map((claim) => preparation.prepare(DRIVER, claim, never)));
  expect(ends.map(({ status }) => status).sort()).toEqual(["fulfilled", "rejected"]);
  expect(calls).toHaveLength(1);
  const loser = claims[ends.findIndex(({ status }) => status === "rejected")]!;
  await expect(preparation.prepare(DRIVER, loser, never)).rejects.toThrow(
    "which is allocated it as well: a device is prepared for one claim at a time",
  );
});

it("a prepare whose call has ended does not call the driver", async () => {
  const { preparation } = preparationIn("boot-1");
  const ending = new AbortController();
  const preparing = preparation.prepare(DRIVER, world.claim("first", "gpu-0"), never, {
    signal: ending.signal,
    waitUntil: Number.POSITIVE_INFINITY,
  });
  ending.abort(stopped("the call has ended"));
  await expect(preparing).rejects.toThrow("the call has ended");
  expect(calls).toEqual([]);
});

it("a prepare waits for the containers of the claim that had the device as long as its call may, and fails with the reason", async () => {
  const { preparation, clock } = preparationIn("boot-1");
  const first = world.claim("first", "gpu-0");
  await preparation.prepare(DRIVER, first, never);
  world.containers.set("pod-of-first", "running");
  world.deleteClaim(first);
  const startedAt = clock.monotonic();
  const call = { signal: never, waitUntil: startedAt + 5_000 };
  await expect(preparation.prepare(DRIVER, world.claim("second", "gpu-0"), never, call)).rejects.toThrow(
    USED,
  );
  expect(clock.monotonic() - startedAt).toBeGreaterThanOrEqual(5_000);
  expect(clock.monotonic() - startedAt).toBeLessThan(10_000);
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
  const recorded = { state: "preparing" as const, devices: [recordedDevice("gpu-0")], pods: [], cdi: "" };
  await world.records(boot).save(DRIVER, claim, recorded);
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

const reported: DeviceReader = (_driver, _pool, name) => ({
  name,
  attributes: { model: { string: "alpha" } },
});
const metadataFiles = () =>
  existsSync(join(world.directory, "metadata"))
    ? readdirSync(join(world.directory, "metadata"), { recursive: true, withFileTypes: true })
        .filter((entry) => entry.isFile())
        .map(({ parentPath, name }) => join(parentPath, name))
    : [];

it.each([true, false])(
  "metadata is mounted while a claim is prepared, with a preparation by the driver: %s",
  async (by) => {
    isPreparing = by;
    const { preparation, records } = preparationIn("boot-1", reported);
    const first = world.claim("first", "gpu-0", "gpu-1");
    const prepared = await preparation.prepare(DRIVER, first, never);
    const file = join(world.directory, "metadata", `${DRIVER}_${first.uid}`, "req.json");
    expect(metadataFiles()).toEqual([file]);
    // The kubelet gives a container all devices of a request, so one of them brings the file.
    const { devices } = specOf(readFileSync(join(world.directory, "cdi", files()[0]!), "utf8"));
    expect(devices[0]).toMatchObject({
      name: prepared[0]!.cdiDeviceIds[0]!.split("=")[1],
      containerEdits: {
        mounts: [
          {
            hostPath: file,
            containerPath: `/var/run/kubernetes.io/dra-device-attributes/resourceclaims/first/req/${DRIVER}-metadata.json`,
            options: ["ro", "bind"],
          },
        ],
      },
    });
    expect(prepared.map(({ cdiDeviceIds }) => cdiDeviceIds.length)).toEqual(by ? [1, 1] : [1, 0]);
    const text = readFileSync(file, "utf8");
    expect(text).toContain('"alpha"');
    // Removed or changed by somebody, while the driver is away and reports nothing.
    for (const damage of [() => rmSync(file), () => writeFileSync(file, "{}")]) {
      damage();
      await preparationIn("boot-1", () => undefined).preparation.reconcile(DRIVER, first.uid, never);
      expect(readFileSync(file, "utf8")).toBe(text);
    }
    await preparation.unprepare(DRIVER, first, never);
    expect([files(), metadataFiles(), records.of(DRIVER)]).toEqual([[], [], []]);
  },
);

it("without the setting containers get no metadata, and devices without preparation no record", async () => {
  isPreparing = false;
  const { preparation, records } = preparationIn("boot-1");
  const first = world.claim("first", "gpu-0");
  expect(await preparation.prepare(DRIVER, first, never)).toMatchObject([
    { device: "gpu-0", cdiDeviceIds: [] },
  ]);
  expect([metadataFiles(), records.of(DRIVER)]).toEqual([[], []]);
});

it("hostPaths does not apply to metadata that the agent mounts itself", async () => {
  const { preparation } = preparationIn("boot-1", reported);
  const first = world.claim("first", "gpu-0");
  await preparation.prepare(DRIVER, first, never);
  const host = new HostFiles({ root: "/", allowed: ["/dev"] });
  const text = readFileSync(join(world.directory, "cdi", files()[0]!), "utf8");
  await checkFile(text, host, metadataFiles());
  await expect(checkFile(text, host)).rejects.toThrow("edits.mounts[0].hostPath: ");
});

it("while a claim is unprepared whose record was lost, no other claim gets a device that it may have had", async () => {
  const { preparation, records } = preparationIn("boot-1", undefined, false);
  const [before, next] = [world.claim("before", "gpu-0"), world.claim("next", "gpu-0")];
  const underWay = Promise.withResolvers<void>();
  const called = Promise.withResolvers<void>();
  duringCall = async (call) => {
    if (!call.startsWith("unprepare before")) return;
    called.resolve();
    await underWay.promise;
  };
  const unprepared = preparation.unprepare(DRIVER, before, never);
  await called.promise;
  expect(records.get(DRIVER, before.uid)!.devices).toEqual([]);
  await expect(preparation.prepare(DRIVER, next, never)).rejects.toThrow(
    "ResourceClaim default/before is being unprepared, and its devices are not recorded",
  );
  underWay.resolve();
  await unprepared;
  await preparation.prepare(DRIVER, next, never);
  expect(calls).toEqual(["unprepare before: ", "prepare next: gpu-0"]);
});

it("a lost claim that has other devices now is unprepared and recorded with them before the driver is called", async () => {
  const { preparation, records } = preparationIn("boot-1");
  const claim = world.claim("moved", "gpu-0");
  await preparation.prepare(DRIVER, claim, never);
  await records.lose(DRIVER, claim.uid);
  world.claim("moved", "gpu-1");
  const recorded: string[][] = [];
  duringCall = async () =>
    void recorded.push(records.get(DRIVER, claim.uid)!.devices.map(({ device }) => device));
  await preparation.prepare(DRIVER, claim, never);
  expect(calls.slice(1)).toEqual(["unprepare moved: gpu-0", "prepare moved: gpu-1"]);
  expect(recorded.at(-1)).toEqual(["gpu-1"]);
});

it("a lost claim is prepared again while its containers run, and keeps the pods that left it meanwhile", async () => {
  const { preparation, records } = preparationIn("boot-1");
  const claim = world.claim("running", "gpu-0");
  await preparation.prepare(DRIVER, claim, never);
  await records.complete(DRIVER, claim.uid, { pods: [{ name: "old", uid: "old" }], devices: [] });
  world.containers.set("old", "running");
  await records.lose(DRIVER, claim.uid);
  isConnected = false;
  await preparation.reconcile(DRIVER, claim.uid, never);
  expect(files()).toEqual([]);
  isConnected = true;
  // The agent is killed while the driver is called: the next one calls again.
  duringCall = () => Promise.reject(stopped("killed"));
  await expect(preparation.reconcile(DRIVER, claim.uid, never)).rejects.toThrow("killed");
  duringCall = () => {};
  expect(files()).toEqual([]);
  const next = preparationIn("boot-1");
  await next.preparation.reconcile(DRIVER, claim.uid, never);
  expect(files()).toHaveLength(1);
  expect(calls).toEqual(Array(3).fill("prepare running: gpu-0"));
  expect(next.records.get(DRIVER, claim.uid)!.pods.map(({ uid }) => uid)).toEqual(["pod-of-running", "old"]);
});

const failing = (work: Promise<unknown>) => expect(work).rejects.toThrow("killed");

it.each([
  ["", undefined, ["unprepare shared: gpu-0", "prepare shared: gpu-0"]],
  [", whose container without the device runs", "running", ["prepare shared: gpu-0"]],
] as const)(
  "a claim that the kubelet could not unprepare is prepared again for a pod that it has started with the claim since%s",
  async (_, container, expected) => {
    const before = preparationIn("boot-1");
    const claim = world.claim("shared", "gpu-0");
    const answered = await before.preparation.prepare(DRIVER, claim, never);
    duringCall = () => Promise.reject(stopped("killed"));
    await failing(before.preparation.unprepare(DRIVER, claim, never));
    duringCall = () => {};
    calls = [];
    // Reserved before, as a claim is of all pods of a workload. The kubelet calls again for the first one.
    const { preparation, records } = preparationIn("boot-1");
    world.reserve(claim, "pod-of-shared", "later");
    await preparation.reconcile(DRIVER, claim.uid, never);
    expect([calls, records.get(DRIVER, claim.uid)?.state, files()]).toEqual([[], "unpreparing", []]);
    world.sandboxes.set("later", "running");
    if (container) world.containers.set("later", container);
    await preparation.reconcile(DRIVER, claim.uid, never);
    expect(calls).toEqual(expected);
    const { state, devices } = records.get(DRIVER, claim.uid)!;
    expect([state, devices, files()]).toEqual([
      "prepared",
      answered,
      [`nodekeeper-${DRIVER}_${claim.uid}.yaml`],
    ]);
    // The kubelet drops the call for the first pod, and calls when the second one has ended.
    world.containers.clear();
    await preparation.unprepare(DRIVER, claim, never);
    expect(records.of(DRIVER)).toEqual([]);
  },
);

it("killed before the claim is prepared again, the next agent does so", async () => {
  const before = preparationIn("boot-1");
  const claim = world.claim("shared", "gpu-0");
  await before.preparation.prepare(DRIVER, claim, never);
  duringCall = () => Promise.reject(stopped("killed"));
  await failing(before.preparation.unprepare(DRIVER, claim, never));
  world.reserve(claim, "later");
  world.sandboxes.set("later", "running");
  for (const call of ["unprepare", "prepare"]) {
    duringCall = (each) => (each.startsWith(call) ? Promise.reject(stopped("killed")) : undefined);
    await failing(preparationIn("boot-1").preparation.reconcile(DRIVER, claim.uid, never));
    expect(files()).toEqual([]);
  }
  duringCall = () => {};
  const { preparation, records } = preparationIn("boot-1");
  await preparation.reconcile(DRIVER, claim.uid, never);
  expect([calls.at(-1), records.get(DRIVER, claim.uid)?.state]).toEqual([
    "prepare shared: gpu-0",
    "prepared",
  ]);
  expect(files()).toHaveLength(1);
});

it("after a call that has ended before its driver was done, a claim is unprepared if it has ended", async () => {
  const { preparation, records } = preparationIn("boot-1");
  const claim = world.claim("shared", "gpu-0");
  await preparation.prepare(DRIVER, claim, never);
  const ending = new AbortController();
  duringCall = () => ending.abort(stopped("the kubelet's timeout"));
  const call = { signal: ending.signal, waitUntil: Number.POSITIVE_INFINITY };
  await preparation.unprepare(DRIVER, claim, never, call);
  // The kubelet considers it prepared still.
  expect(records.get(DRIVER, claim.uid)?.state).toBe("unpreparing");
  await preparation.reconcile(DRIVER, claim.uid, never);
  expect(records.get(DRIVER, claim.uid)?.state).toBe("unpreparing");
  world.deleteClaim(claim);
  await preparation.reconcile(DRIVER, claim.uid, never);
  expect(records.of(DRIVER)).toEqual([]);
});

it("an interface stays with a claim that is being unprepared until its containers have exited", async () => {
  hostRoot = join(world.directory, "host");
  mkdirSync(join(hostRoot, "proc/1/net"), { recursive: true });
  writeFileSync(join(hostRoot, "proc/1/net/route"), "Iface\tDestination\n");
  edits = { netDevices: [{ hostInterfaceName: "eth1", name: "eth1" }] };
  const { preparation } = preparationIn("boot-1");
  const [first, second] = [world.claim("first", "nic-0"), world.claim("second", "nic-1")];
  await preparation.prepare(DRIVER, first, never);
  world.containers.set("pod-of-first", "running");
  await expect(preparation.unprepare(DRIVER, first, never)).rejects.toThrow("has not exited");
  const taken = `ResourceClaim default/first of driver ${DRIVER} has the node's interface "eth1"`;
  await expect(preparation.prepare(DRIVER, second, never)).rejects.toThrow(taken);
  // The same for an agent that was restarted.
  await expect(preparationIn("boot-1").preparation.prepare(DRIVER, second, never)).rejects.toThrow(taken);
  world.containers.set("pod-of-first", "exited");
  await preparation.unprepare(DRIVER, first, never);
  expect(await preparation.prepare(DRIVER, second, never)).toHaveLength(1);
});
