import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { stopped } from "@nodekeeper/core/lib";
import { afterEach, beforeEach, expect, it } from "vitest";
import { checkFile, specOf } from "./cdi-file.ts";
import type { DeviceReader } from "./device-metadata.ts";
import { HostFiles } from "./host-files.ts";
import { DRIVER, recordedDevice } from "./testing/claim-world.ts";
import { never, PreparationWorld } from "./testing/preparation-world.ts";

let world: PreparationWorld;

beforeEach(() => {
  world = new PreparationWorld();
});
afterEach(() => world[Symbol.dispose]());

it("a call that ends while its claim is being recorded does not call the driver", async () => {
  const { preparation, records } = world.preparationIn("boot-1");
  const first = world.claim("first", "gpu-0");
  const ending = new AbortController();
  const commit = world.store.together.bind(world.store);
  world.store.together = (work) => {
    commit(work);
    ending.abort(stopped("the kubelet left"));
  };
  const call = { signal: ending.signal, waitUntil: Number.POSITIVE_INFINITY };
  await expect(preparation.prepare(DRIVER, first, never, call)).rejects.toThrow("the kubelet left");
  expect(world.calls).toEqual([]);
  // It may not be known after a kill that the driver was not called.
  expect(records.get(DRIVER, first.uid)?.state).toBe("preparing");
});

const pod = (name: string) => ({ name, uid: name });

it("a pod that another call recorded while the driver was called stays recorded", async () => {
  const { preparation, records } = world.preparationIn("boot-1");
  const first = world.claim("first", "gpu-0");
  world.duringCall = () => records.complete(DRIVER, first.uid, { pods: [pod("later")], devices: [] });
  await preparation.prepare(DRIVER, first, never);
  expect(records.get(DRIVER, first.uid)?.pods).toEqual([pod("pod-of-first"), pod("later")]);
});

it("a pod that another call recorded while departed pods' containers ended stays recorded", async () => {
  const { preparation, records } = world.preparationIn("boot-1");
  const first = world.claim("first", "gpu-0");
  const pods = [pod("departed"), pod("pod-of-first")];
  await records.save(DRIVER, first, { state: "prepared", devices: [recordedDevice("gpu-0")], pods, cdi: "" });
  world.duringRead = () => records.complete(DRIVER, first.uid, { pods: [pod("later")], devices: [] });
  await preparation.prepare(DRIVER, first, never);
  expect(records.get(DRIVER, first.uid)?.pods).toEqual([pod("pod-of-first"), pod("later")]);
});

it("a call to unprepare that waits does not unprepare what was prepared meanwhile", async () => {
  const { preparation, records } = world.preparationIn("boot-1");
  const first = world.claim("first", "gpu-0");
  await preparation.prepare(DRIVER, first, never);
  world.containers.set("pod-of-first", "running");
  let reads = 0;
  world.duringRead = async () => {
    if (++reads !== 2) return;
    world.containers.delete("pod-of-first");
    await preparation.prepare(DRIVER, first, never);
  };
  await preparation.unprepare(DRIVER, first, never);
  expect(world.calls).toEqual(["prepare first: gpu-0", "unprepare first: gpu-0", "prepare first: gpu-0"]);
  expect(records.get(DRIVER, first.uid)?.state).toBe("prepared");
});

it("a prepare whose call has ended does not call the driver", async () => {
  const { preparation } = world.preparationIn("boot-1");
  const ending = new AbortController();
  const preparing = preparation.prepare(DRIVER, world.claim("first", "gpu-0"), never, {
    signal: ending.signal,
    waitUntil: Number.POSITIVE_INFINITY,
  });
  ending.abort(stopped("the call has ended"));
  await expect(preparing).rejects.toThrow("the call has ended");
  expect(world.calls).toEqual([]);
});

it("unprepares a claim that has ended, and no other", async () => {
  const { preparation, records } = world.preparationIn("boot-1");
  const claim = world.claim("claim", "gpu-0");
  await preparation.prepare(DRIVER, claim, never);
  expect(await preparation.unprepareEnded(DRIVER, claim.uid, never)).toBe(false);
  expect(records.of(DRIVER)).toHaveLength(1);
  world.deleteClaim(claim);
  expect(await preparation.unprepareEnded(DRIVER, claim.uid, never)).toBe(true);
  expect(records.of(DRIVER)).toEqual([]);
  expect(world.files()).toEqual([]);
});

it("after a call that has ended before its driver was done, a claim is unprepared if it has ended", async () => {
  const { preparation, records } = world.preparationIn("boot-1");
  const claim = world.claim("shared", "gpu-0");
  await preparation.prepare(DRIVER, claim, never);
  const ending = new AbortController();
  world.duringCall = () => ending.abort(stopped("the kubelet's timeout"));
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
    world.isPreparing = by;
    const { preparation, records } = world.preparationIn("boot-1", reported);
    const first = world.claim("first", "gpu-0", "gpu-1");
    const prepared = await preparation.prepare(DRIVER, first, never);
    const file = join(world.directory, "metadata", `${DRIVER}_${first.uid}`, "req.json");
    expect(metadataFiles()).toEqual([file]);
    // The kubelet gives a container all devices of a request, so one of them brings the file.
    const { devices } = specOf(readFileSync(join(world.directory, "cdi", world.files()[0]!), "utf8"));
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
      await world.preparationIn("boot-1", () => undefined).preparation.reconcile(DRIVER, first.uid, never);
      expect(readFileSync(file, "utf8")).toBe(text);
    }
    await preparation.unprepare(DRIVER, first, never);
    expect([world.files(), metadataFiles(), records.of(DRIVER)]).toEqual([[], [], []]);
  },
);

it("without the setting containers get no metadata, and devices without preparation no record", async () => {
  world.isPreparing = false;
  const { preparation, records } = world.preparationIn("boot-1");
  const first = world.claim("first", "gpu-0");
  expect(await preparation.prepare(DRIVER, first, never)).toMatchObject([
    { device: "gpu-0", cdiDeviceIds: [] },
  ]);
  expect([metadataFiles(), records.of(DRIVER)]).toEqual([[], []]);
});

it("hostPaths does not apply to metadata that the agent mounts itself", async () => {
  const { preparation } = world.preparationIn("boot-1", reported);
  const first = world.claim("first", "gpu-0");
  await preparation.prepare(DRIVER, first, never);
  const host = new HostFiles({ root: "/", allowed: ["/dev"] });
  const text = readFileSync(join(world.directory, "cdi", world.files()[0]!), "utf8");
  await checkFile(text, host, metadataFiles());
  await expect(checkFile(text, host)).rejects.toThrow("edits.mounts[0].hostPath: ");
});
