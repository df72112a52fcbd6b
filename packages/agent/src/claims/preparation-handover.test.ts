import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { DRIVER, recordedDevice } from "./testing/claim-world.ts";
import { never, PreparationWorld } from "./testing/preparation-world.ts";

let world: PreparationWorld;

beforeEach(() => {
  world = new PreparationWorld();
});
afterEach(() => world[Symbol.dispose]());

it("a device is unprepared for the claim that had it before it is prepared for the next one", async () => {
  const { preparation } = world.preparationIn("boot-1");
  const first = world.claim("first", "gpu-0");
  await preparation.prepare(DRIVER, first, never);
  world.isConnected = false;
  await preparation.unprepare(DRIVER, first, never);
  world.deleteClaim(first);
  const second = world.claim("second", "gpu-0");
  world.isConnected = true;
  world.isFailing = true;
  await expect(preparation.prepare(DRIVER, second, never)).rejects.toThrow(
    "a device is not unprepared yet for ResourceClaim default/first, which had it before: out of order",
  );
  world.isFailing = false;
  await preparation.prepare(DRIVER, second, never);
  expect(world.calls).toEqual(["prepare first: gpu-0", "unprepare first: gpu-0", "prepare second: gpu-0"]);
  // The kubelet's late call does not count for the device.
  await preparation.unprepare(DRIVER, first, never);
  expect(world.calls.at(-1)).toBe("unprepare first: ");
});

it("also where the kubelet never unprepared it, as for a pod that was deleted by force", async () => {
  const { preparation } = world.preparationIn("boot-1");
  const first = world.claim("first", "gpu-0", "gpu-1");
  await preparation.prepare(DRIVER, first, never);
  world.deleteClaim(first);
  await preparation.prepare(DRIVER, world.claim("second", "gpu-1"), never);
  expect(world.calls.slice(1)).toEqual(["unprepare first: gpu-0,gpu-1", "prepare second: gpu-1"]);
});

const USED =
  "container main of pod default/pod-of-first uses worker-1/gpu-0 and has not exited: its state in the container runtime is";

it.each(["running", "created", "unknown"] as const)(
  "while a container of the claim that had it is %s, no other claim gets it, and the driver is not called",
  async (state) => {
    const { preparation } = world.preparationIn("boot-1");
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
    expect(world.calls).toEqual(["prepare first: gpu-0"]);
    // Without its CDI file, no new container can use the claim. The first failure queues it for reconciliation; the queue's
    // backoff determines when it is tried again.
    expect(world.files()).toEqual([]);
    expect(world.deferred).toBe(1);
    world.containers.set("pod-of-first", "exited");
    await preparation.reconcile(DRIVER, first.uid, never);
    await preparation.prepare(DRIVER, second, never);
    expect(world.calls.slice(1)).toEqual(["unprepare first: gpu-0", "prepare second: gpu-0"]);
  },
);

it("pods that a claim is no longer reserved for end before it is prepared for the next ones", async () => {
  const { preparation, records } = world.preparationIn("boot-1");
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

it("claims that had the devices are unprepared at once, not in turn", async () => {
  const { preparation } = world.preparationIn("boot-1");
  const holders = [world.claim("a", "gpu-0"), world.claim("b", "gpu-1")];
  for (const holder of holders) {
    await preparation.prepare(DRIVER, holder, never);
    world.deleteClaim(holder);
  }
  const both = Promise.withResolvers<void>();
  let unpreparing = 0;
  world.duringCall = async (call) => {
    if (!call.startsWith("unprepare")) return;
    if (++unpreparing === holders.length) both.resolve();
    await both.promise;
  };
  await preparation.prepare(DRIVER, world.claim("next", "gpu-0", "gpu-1"), never);
  expect(world.calls.at(-1)).toBe("prepare next: gpu-0,gpu-1");
});

it("without lifecycle a device is handed on when the kubelet has unprepared it, and not before", async () => {
  world.isLifecycleOn = false;
  const { preparation } = world.preparationIn("boot-1");
  const first = world.claim("first", "gpu-0");
  await preparation.prepare(DRIVER, first, never);
  world.deleteClaim(first);
  const second = world.claim("second", "gpu-0");
  await expect(preparation.prepare(DRIVER, second, never)).rejects.toThrow("lifecycle.enabled is false");
  await preparation.unprepare(DRIVER, first, never);
  await preparation.prepare(DRIVER, second, never);
  expect(world.calls.slice(1)).toEqual(["unprepare first: gpu-0", "prepare second: gpu-0"]);
});

it("a device of a claim that exists is not prepared for another one, in turn or at once", async () => {
  const { preparation } = world.preparationIn("boot-1");
  const claims = ["a", "b"].map((name) => world.claim(name, "gpu-0"));
  const ends = await Promise.allSettled(claims.map((claim) => preparation.prepare(DRIVER, claim, never)));
  expect(ends.map(({ status }) => status).sort()).toEqual(["fulfilled", "rejected"]);
  expect(world.calls).toHaveLength(1);
  const loser = claims[ends.findIndex(({ status }) => status === "rejected")]!;
  await expect(preparation.prepare(DRIVER, loser, never)).rejects.toThrow(
    "which is allocated it as well: a device is prepared for one claim at a time",
  );
});

it("a prepare waits for the containers of the claim that had the device as long as its call may, and fails with the reason", async () => {
  const { preparation, clock } = world.preparationIn("boot-1");
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
  const { preparation } = world.preparationIn("boot-1");
  const claims = [world.claim("a", "gpu-0"), world.claim("b", "gpu-1")];
  for (const claim of claims) await preparation.prepare(DRIVER, claim, never);
  world.claim("a", "gpu-1");
  world.claim("b", "gpu-0");
  await Promise.all(claims.map((claim) => preparation.prepare(DRIVER, claim, never)));
  expect(world.calls).toContain("prepare a: gpu-1");
  expect(world.calls).toContain("prepare b: gpu-0");
  expect(world.files()).toHaveLength(2);
});

it("while a claim is unprepared whose record was lost, no other claim gets a device that it may have had", async () => {
  const { preparation, records } = world.preparationIn("boot-1", undefined, false);
  const [before, next] = [world.claim("before", "gpu-0"), world.claim("next", "gpu-0")];
  const underWay = Promise.withResolvers<void>();
  const called = Promise.withResolvers<void>();
  world.duringCall = async (call) => {
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
  expect(world.calls).toEqual(["unprepare before: ", "prepare next: gpu-0"]);
});

it("an interface stays with a claim that is being unprepared until its containers have exited", async () => {
  world.hostRoot = join(world.directory, "host");
  mkdirSync(join(world.hostRoot, "proc/1/net"), { recursive: true });
  writeFileSync(join(world.hostRoot, "proc/1/net/route"), "Iface\tDestination\n");
  world.edits = { netDevices: [{ hostInterfaceName: "eth1", name: "eth1" }] };
  const { preparation } = world.preparationIn("boot-1");
  const [first, second] = [world.claim("first", "nic-0"), world.claim("second", "nic-1")];
  await preparation.prepare(DRIVER, first, never);
  world.containers.set("pod-of-first", "running");
  await expect(preparation.unprepare(DRIVER, first, never)).rejects.toThrow("has not exited");
  const taken = `ResourceClaim default/first of driver ${DRIVER} has the node's interface "eth1"`;
  await expect(preparation.prepare(DRIVER, second, never)).rejects.toThrow(taken);
  // The same for an agent that was restarted.
  await expect(world.preparationIn("boot-1").preparation.prepare(DRIVER, second, never)).rejects.toThrow(
    taken,
  );
  world.containers.set("pod-of-first", "exited");
  await preparation.unprepare(DRIVER, first, never);
  expect(await preparation.prepare(DRIVER, second, never)).toHaveLength(1);
});

it("a claim is not prepared for a driver that registers again while its answer is checked: it was told of none", async () => {
  const { preparation, records } = world.preparationIn("boot-1");
  const claim = world.claim("first", "gpu-0");
  // Its path is looked up on the host.
  world.edits = { deviceNodes: [{ path: "/dev/null" }] };
  // After all callbacks of this turn, among them those of the answer.
  world.duringCall = () =>
    process.nextTick(() => {
      world.isReplaced = true;
    });
  await expect(preparation.prepare(DRIVER, claim, never)).rejects.toThrow(
    "it registered again while it prepared the claim",
  );
  expect(records.get(DRIVER, claim.uid)?.state).toBe("preparing");
  await preparation.prepare(DRIVER, claim, never);
  expect(records.get(DRIVER, claim.uid)?.state).toBe("prepared");
});
