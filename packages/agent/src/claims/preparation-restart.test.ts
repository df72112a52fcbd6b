import { stopped } from "@nodekeeper/core/lib";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { DRIVER, recordedDevice } from "./testing/claim-world.ts";
import { never, PreparationWorld } from "./testing/preparation-world.ts";

let world: PreparationWorld;

beforeEach(() => {
  world = new PreparationWorld();
});
afterEach(() => world[Symbol.dispose]());

it("without a writable state directory a claim is not released while its driver is disconnected: a restart would forget it", async () => {
  const { preparation, records } = world.preparationIn("boot-1");
  const claim = world.claim("one", "gpu-0");
  await preparation.prepare(DRIVER, claim, never);
  const isKept = vi.spyOn(records, "isKept", "get").mockReturnValue(false);
  world.isConnected = false;
  await expect(preparation.unprepare(DRIVER, claim, never)).rejects.toThrow("can't be recorded");
  expect(world.files()).toHaveLength(1);
  world.isConnected = true;
  await preparation.unprepare(DRIVER, claim, never);
  expect(world.calls).toEqual(["prepare one: gpu-0", "unprepare one: gpu-0"]);
  isKept.mockRestore();
});

it("a record that an agent without a writable state directory could not remove answers no kubelet's call", async () => {
  const { preparation } = world.preparationIn("boot-1");
  const claim = world.claim("one", "gpu-0");
  await preparation.prepare(DRIVER, claim, never);
  const stored = world.store.claims();
  await preparation.unprepare(DRIVER, claim, never);
  for (const record of stored) world.store.save(record);
  const next = world.preparationIn("boot-1", undefined, false);
  await next.preparation.prepare(DRIVER, claim, never);
  await next.preparation.prepare(DRIVER, claim, never);
  expect(world.calls).toEqual(["prepare one: gpu-0", "unprepare one: gpu-0", "prepare one: gpu-0"]);
});

it.each([
  ["other devices: the recorded ones are unprepared first", "boot-1", "gpu-1", ["unprepare claim: gpu-0"]],
  ["the same devices: tried again", "boot-1", "gpu-0", []],
  ["other devices after a reboot: nothing is left of the recorded ones", "boot-0", "gpu-1", []],
])("a preparation that was not completed, and now %s", async (_, boot, device, before) => {
  const claim = world.claim("claim", device);
  const recorded = { state: "preparing" as const, devices: [recordedDevice("gpu-0")], pods: [], cdi: "" };
  await world.records(boot).save(DRIVER, claim, recorded);
  await world.preparationIn("boot-1").preparation.prepare(DRIVER, claim, never);
  expect(world.calls).toEqual([...before, `prepare claim: ${device}`]);
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
  await world.preparationIn("boot-1").preparation.prepare(DRIVER, claim, never);
  if (devices.length > 0) world.claim("claim", ...devices);
  else world.deleteClaim(claim);
  world.calls = [];
  const { preparation, records } = world.preparationIn("boot-2");
  await preparation.reconcile(DRIVER, claim.uid, never);
  expect(world.calls).toEqual(expected);
  expect(records.of(DRIVER)).toHaveLength(remaining);
  expect(world.files()).toHaveLength(remaining);
});

it("a lost claim that has other devices now is unprepared and recorded with them before the driver is called", async () => {
  const { preparation, records } = world.preparationIn("boot-1");
  const claim = world.claim("moved", "gpu-0");
  await preparation.prepare(DRIVER, claim, never);
  await records.lose(DRIVER, claim.uid);
  world.claim("moved", "gpu-1");
  const recorded: string[][] = [];
  world.duringCall = async () =>
    void recorded.push(records.get(DRIVER, claim.uid)!.devices.map(({ device }) => device));
  await preparation.prepare(DRIVER, claim, never);
  expect(world.calls.slice(1)).toEqual(["unprepare moved: gpu-0", "prepare moved: gpu-1"]);
  expect(recorded.at(-1)).toEqual(["gpu-1"]);
});

it("a lost claim is prepared again while its containers run, and keeps the pods that left it meanwhile", async () => {
  const { preparation, records } = world.preparationIn("boot-1");
  const claim = world.claim("running", "gpu-0");
  await preparation.prepare(DRIVER, claim, never);
  await records.complete(DRIVER, claim.uid, { pods: [{ name: "old", uid: "old" }], devices: [] });
  world.containers.set("old", "running");
  await records.lose(DRIVER, claim.uid);
  world.isConnected = false;
  await preparation.reconcile(DRIVER, claim.uid, never);
  expect(world.files()).toEqual([]);
  world.isConnected = true;
  // The agent is killed while the driver is called: the next one calls again.
  world.duringCall = () => Promise.reject(stopped("killed"));
  await expect(preparation.reconcile(DRIVER, claim.uid, never)).rejects.toThrow("killed");
  world.duringCall = () => {};
  expect(world.files()).toEqual([]);
  const next = world.preparationIn("boot-1");
  await next.preparation.reconcile(DRIVER, claim.uid, never);
  expect(world.files()).toHaveLength(1);
  expect(world.calls).toEqual(Array(3).fill("prepare running: gpu-0"));
  expect(next.records.get(DRIVER, claim.uid)!.pods.map(({ uid }) => uid)).toEqual(["pod-of-running", "old"]);
});

const failing = (work: Promise<unknown>) => expect(work).rejects.toThrow("killed");

it.each([
  ["", undefined, ["unprepare shared: gpu-0", "prepare shared: gpu-0"]],
  [", whose container without the device runs", "running", ["prepare shared: gpu-0"]],
] as const)(
  "a claim that the kubelet could not unprepare is prepared again for a pod that it has started with the claim since%s",
  async (_, container, expected) => {
    const before = world.preparationIn("boot-1");
    const claim = world.claim("shared", "gpu-0");
    const answered = await before.preparation.prepare(DRIVER, claim, never);
    world.duringCall = () => Promise.reject(stopped("killed"));
    await failing(before.preparation.unprepare(DRIVER, claim, never));
    world.duringCall = () => {};
    world.calls = [];
    // The claim has been reserved for a second pod of the workload. The kubelet calls again for the first one.
    const { preparation, records } = world.preparationIn("boot-1");
    world.reserve(claim, "pod-of-shared", "later");
    await preparation.reconcile(DRIVER, claim.uid, never);
    expect([world.calls, records.get(DRIVER, claim.uid)?.state, world.files()]).toEqual([
      [],
      "unpreparing",
      [],
    ]);
    world.sandboxes.set("later", "running");
    if (container) world.containers.set("later", container);
    await preparation.reconcile(DRIVER, claim.uid, never);
    expect(world.calls).toEqual(expected);
    const { state, devices } = records.get(DRIVER, claim.uid)!;
    expect([state, devices, world.files()]).toEqual([
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
  const before = world.preparationIn("boot-1");
  const claim = world.claim("shared", "gpu-0");
  await before.preparation.prepare(DRIVER, claim, never);
  world.duringCall = () => Promise.reject(stopped("killed"));
  await failing(before.preparation.unprepare(DRIVER, claim, never));
  world.reserve(claim, "later");
  world.sandboxes.set("later", "running");
  for (const call of ["unprepare", "prepare"]) {
    world.duringCall = (each) => (each.startsWith(call) ? Promise.reject(stopped("killed")) : undefined);
    await failing(world.preparationIn("boot-1").preparation.reconcile(DRIVER, claim.uid, never));
    expect(world.files()).toEqual([]);
  }
  world.duringCall = () => {};
  const { preparation, records } = world.preparationIn("boot-1");
  await preparation.reconcile(DRIVER, claim.uid, never);
  expect([world.calls.at(-1), records.get(DRIVER, claim.uid)?.state]).toEqual([
    "prepare shared: gpu-0",
    "prepared",
  ]);
  expect(world.files()).toHaveLength(1);
});
