import type { RequestInfo } from "@nodekeeper/testing";
import { eventually } from "@nodekeeper/testing/until";
import { afterEach, describe, expect, it } from "vitest";
import { NODE, refusal, SLICES, setUp, specOf, tearDown } from "../testing/device-cluster.ts";

afterEach(tearDown);

const gpu = "gpu.example.com";

function foreignSlice(name: string, pool: { name: string; generation: number; resourceSliceCount: number }) {
  return {
    apiVersion: "resource.k8s.io/v1",
    kind: "ResourceSlice",
    metadata: { name },
    spec: { driver: gpu, nodeName: NODE, pool, devices: [{ name: "theirs" }] },
  };
}

describe("slices of the same pool that another client published", () => {
  it.each([1, 7])("are outdated and deleted, and reported: generation %i", async (generation) => {
    const { startDriver, devices, server, slices, events, verdicts } = await setUp();
    server.store.put(foreignSlice("theirs-0", { name: NODE, generation, resourceSliceCount: 1 }));
    await startDriver(gpu, 3);
    await eventually(() => expect(devices()).toEqual(["device-0", "device-1", "device-2"]));
    await eventually(() => expect(slices()).toHaveLength(1));
    expect(verdicts()).toMatchObject([{ state: "complete", generation: generation + 1 }]);
    await eventually(() => expect(events.join()).toMatch(/slices of another client.*theirs-0/));
  });

  it("that come later hide the agent's no longer than it takes to write", async () => {
    const { startDriver, devices, server, slices } = await setUp();
    await startDriver(gpu, 200);
    await eventually(() => expect(devices()).toHaveLength(200));
    server.store.put(foreignSlice("theirs-0", { name: NODE, generation: 12, resourceSliceCount: 1 }));
    await eventually(() => expect(slices()).toHaveLength(2));
    expect(devices()).toHaveLength(200);
    expect(slices().map((slice) => specOf(slice).pool.generation)).toEqual([13, 13]);
  });

  it("that can't be deleted are shown, and outdated all the same", async () => {
    const { startDriver, devices, server, sync, setAdmit } = await setUp();
    setAdmit(({ method }) => (method === "DELETE" ? refusal("not yours", 403) : undefined));
    server.store.put(foreignSlice("theirs-0", { name: NODE, generation: 3, resourceSliceCount: 1 }));
    await startDriver(gpu, 3);
    await eventually(() => expect(devices()).toHaveLength(3));
    await eventually(() =>
      expect(sync.status()).toMatchObject([{ foreign: ["theirs-0"], writeError: /not yours/ }]),
    );
  });

  it("in other pools of the driver are its own matter", async () => {
    const { startDriver, devices, server, slices } = await setUp();
    server.store.put(foreignSlice("theirs-0", { name: "other", generation: 3, resourceSliceCount: 1 }));
    await startDriver(gpu, 2);
    await eventually(() => expect(devices()).toEqual(["device-0", "device-1", "theirs"]));
    expect(slices()).toHaveLength(2);
  });
});

describe("a delete that the watch missed", () => {
  it("of a slice written during the outage is noticed by the relist", async () => {
    let isOut = false;
    const cutsReads = ({ method, query }: RequestInfo) =>
      isOut && method === "GET" && !query.get("fieldSelector")?.startsWith("metadata.name")
        ? { status: 503, body: {} }
        : undefined;
    const { startDriver, devices, server, slices } = await setUp({ faults: cutsReads });
    const source = await startDriver(gpu, 3);
    await eventually(() => expect(devices()).toHaveLength(3));
    isOut = true;
    server.cutWatches();
    source.report(300);
    await eventually(() => expect(devices()).toHaveLength(300));
    // Deleted while no client watches, and so long ago that the history does not have it.
    server.store.delete(SLICES, slices()[1]!.metadata.name!);
    server.store.put({ apiVersion: "v1", kind: "Namespace", metadata: { name: "later" } });
    server.store.compact();
    isOut = false;
    await eventually(() => expect(devices()).toHaveLength(300));
  });

  it("is noticed by the full comparison, even where the watch never reports it", async () => {
    const { startDriver, devices, server, slices } = await setUp({ recheckMs: 200, deaf: true });
    await startDriver(gpu, 3);
    await eventually(() => expect(devices()).toHaveLength(3));
    server.store.delete(SLICES, slices()[0]!.metadata.name!);
    await eventually(() => expect(devices()).toHaveLength(3));
  });
});

describe("health", () => {
  it("fails when a driver never sends devices", async () => {
    let ahead = 0;
    const { startDriver, sync } = await setUp({ ahead: () => ahead });
    await startDriver(gpu, 0, "silent");
    const check = () => sync.healthChecks()[0]!.check();
    expect(check().ok).toBe(true);
    ahead = 61_000;
    expect(check()).toMatchObject({
      ok: false,
      message: /gpu\.example\.com for 6\d s: the driver sent no devices/,
      errorId: "NK1502",
    });
  });

  it("fails when nothing could be written for a minute, whatever each slice is refused for", async () => {
    let ahead = 0;
    const { startDriver, sync, setAdmit } = await setUp({ ahead: () => ahead });
    setAdmit(() => refusal("closed for today"));
    await startDriver(gpu, 3);
    const check = () => sync.healthChecks()[1]!.check();
    await eventually(() => expect(check().message).toMatch(/closed for today/));
    expect(check().ok).toBe(true);
    ahead = 61_000;
    expect(check().ok).toBe(false);
    setAdmit(undefined);
    await eventually(() => expect(check().ok).toBe(true));
  });

  it("keeps what was learnt when the server can't be asked again", async () => {
    let isOut = false;
    let refusedChecks = 0;
    const { startDriver, devices, sync, dryRuns } = await setUp({
      recheckMs: 100,
      faults: ({ path }) => {
        if (!isOut || (path !== "/version" && path !== "/apis")) return undefined;
        refusedChecks++;
        return { status: 503, body: {} };
      },
    });
    const source = await startDriver(gpu, [
      { name: "good" },
      { name: "bad", taints: [{ key: "k", effect: "NoSchedule" }] },
    ]);
    await eventually(() => expect(devices()).toEqual(["good"]));
    isOut = true;
    await eventually(() => expect(refusedChecks).toBeGreaterThan(2));
    expect(sync.version).toBe("v1");
    const before = dryRuns.length;
    source.report([
      { name: "good" },
      { name: "new" },
      { name: "bad", taints: [{ key: "k", effect: "NoSchedule" }] },
    ]);
    await eventually(() => expect(devices()).toEqual(["good", "new"]));
    expect(dryRuns).toHaveLength(before);
  });
});

it("counts are of what the server has", async () => {
  const { startDriver, devices, sync, setFaults } = await setUp();
  const source = await startDriver(gpu, 200);
  await eventually(() => expect(devices()).toHaveLength(200));
  setFaults(({ method }) => (method === "GET" ? undefined : { status: 503, body: {} }));
  source.report(300);
  await eventually(() => expect(sync.status()[0]).toMatchObject({ reported: 300, devices: 200 }));
});

it("devices that come and go make one Event, not one each", async () => {
  const { driver, register, sync, events } = await setUp();
  const source = await driver(gpu);
  await register(gpu, source);
  for (let at = 1; at <= 20; at++) {
    source.report([
      { name: "good" },
      ...Array.from({ length: at }, (_, number) => ({ name: `Bad ${number}` })),
    ]);
    await eventually(() => expect(sync.status()[0]).toMatchObject({ quarantined: at }));
  }
  await eventually(() => expect(events).toHaveLength(1));
});
