import type { RequestInfo } from "@nodekeeper/testing";
import { eventually, until } from "@nodekeeper/testing/until";
import { afterEach, describe, expect, it } from "vitest";
import { NODE, SLICES, setUp, specOf, tearDown } from "../testing/device-cluster.ts";
import type { DeviceSync } from "./device-sync.ts";
import { managedByLabel } from "./slice-api.ts";

afterEach(tearDown);

/** Has the first driver report, and waits until the agent has the message. */
async function received(sync: DeviceSync, report: () => void): Promise<void> {
  const before = sync.status()[0]?.messageAt ?? 0;
  // By its time, milliseconds, a message is distinguished from one that came in an earlier millisecond alone.
  await until("another millisecond", () => Date.now() > before);
  report();
  await eventually(() => expect(sync.status()[0]?.messageAt).toBeGreaterThan(before));
}

describe("DeviceSync", () => {
  it("publishes what a driver streams, owned by the Node, and nothing when nothing changed", async () => {
    const { startDriver, slices, devices, writes, server, sync } = await setUp();
    const gpu = await startDriver("gpu.example.com", 200);
    await eventually(() => expect(devices()).toHaveLength(200));
    const node = server.store.get("nodes", NODE);
    expect(slices().map(specOf)).toMatchObject([
      { driver: "gpu.example.com", nodeName: NODE, pool: { generation: 1, resourceSliceCount: 2 } },
      { driver: "gpu.example.com", nodeName: NODE, pool: { generation: 1, resourceSliceCount: 2 } },
    ]);
    expect(slices()[0]?.metadata.ownerReferences).toMatchObject([
      { kind: "Node", name: NODE, uid: node?.metadata.uid },
    ]);
    gpu.report(200);
    gpu.report(200);
    // What another driver reports later is published: what these would have caused is there.
    await startDriver("nic.example.com", [{ name: "nic" }]);
    await eventually(() => expect(devices()).toHaveLength(201));
    expect(writes).toHaveLength(3);
    gpu.report(199);
    await eventually(() => expect(devices()).toHaveLength(200));
    expect(writes).toHaveLength(4);
    await eventually(() =>
      expect(sync.status()).toMatchObject([
        { state: "streaming", devices: 199, slices: [{ devices: 100 }, { devices: 99 }] },
        { state: "streaming", devices: 1 },
      ]),
    );
    expect(sync.healthChecks().every((check) => check.check().ok)).toBe(true);
  });

  it("knows a device as its driver reported it last, by driver, pool and name", async () => {
    const { driver, register, sync } = await setUp();
    const gpu = await driver("gpu.example.com");
    const on = (node: bigint) => [{ name: "gpu-0", attributes: { numaNode: { int: node } } }];
    gpu.report(on(0n));
    const numaNode = () => sync.reportedDevice("gpu.example.com", NODE, "gpu-0")?.attributes?.numaNode;
    const seen: unknown[] = [];
    const stopListening = sync.onDevicesKnown(() => seen.push(numaNode()));
    await register("gpu.example.com", gpu);
    await eventually(() => expect(numaNode()).toEqual({ int: 0 }));
    gpu.report(on(1n));
    await eventually(() => expect(numaNode()).toEqual({ int: 1 }));
    // Once for the driver, when its devices can be had.
    expect(seen).toEqual([{ int: 0 }]);
    stopListening();
    expect(sync.reportedDevice("gpu.example.com", NODE, "gpu-1")).toBeUndefined();
    expect(sync.reportedDevice("gpu.example.com", "other", "gpu-0")).toBeUndefined();
    expect(sync.reportedDevice("nic.example.com", NODE, "gpu-0")).toBeUndefined();
    // From now on it publishes by itself: what it reported before may be outdated.
    await register("gpu.example.com", gpu, ["v1.DRAPlugin"]);
    expect(numaNode()).toBeUndefined();
  });

  it("takes the protocol of 1.30", async () => {
    const { driver, register, devices } = await setUp();
    const old = await driver("old.example.com");
    await register("old.example.com", old, ["1.0.0"]);
    await eventually(() => expect(devices()).toEqual(["gpu-0"]));
  });

  it("leaves drivers of today's versions to themselves", async () => {
    const { startDriver, driver, register, sync, slices } = await setUp();
    await register("new.example.com", await driver("new.example.com"), ["v1.DRAPlugin", "v1beta1.DRAPlugin"]);
    await eventually(() => expect(sync.status()).toMatchObject([{ state: "none" }]));
    // One that registers later is published.
    await startDriver("later.example.com", 1);
    await eventually(() => expect(slices()).not.toEqual([]));
    expect(slices().map((slice) => specOf(slice).driver)).toEqual(["later.example.com"]);
  });

  it("keeps what a driver reported when its stream ends, and when it breaks", async () => {
    const { startDriver, devices, sync } = await setUp();
    await startDriver("gpu.example.com", 3, "end");
    await eventually(() => expect(devices()).toHaveLength(3));
    await eventually(() => expect(sync.status()).toMatchObject([{ state: "ended" }]));
    const other = await startDriver("nic.example.com", 2);
    await eventually(() => expect(devices()).toHaveLength(5));
    other.report(2, "fail");
    await eventually(() =>
      expect(sync.status()[1]).toMatchObject({ state: "failing", error: /out of order/ }),
    );
    expect(devices()).toHaveLength(5);
  });

  it("keeps a driver's slices over a new registration, until its first message", async () => {
    const { driver, register, devices, writes, slices } = await setUp();
    const gpu = await driver("gpu.example.com");
    gpu.report(3);
    const first = await register("gpu.example.com", gpu);
    await eventually(() => expect(devices()).toHaveLength(3));
    const uid = slices()[0]?.metadata.uid;
    const again = await driver("gpu2");
    again.report(4);
    await register("gpu.example.com", again);
    await eventually(() => expect(devices()).toHaveLength(4));
    expect(slices()[0]?.metadata.uid).toBe(uid);
    expect(writes.filter(({ method }) => method === "DELETE")).toEqual([]);
    expect(first.generation).toBe(1);
  });

  it("deletes the slices of a driver that disconnected after a delay, unless it registers again", async () => {
    const settings = { wipeDelay: 86_400_000 };
    const { driver, register, devices, sync, writes } = await setUp({ settings });
    const gpu = await driver("gpu.example.com");
    gpu.report(3);
    const registration = await register("gpu.example.com", gpu);
    await eventually(() => expect(devices()).toHaveLength(3));
    sync.handler.deregister(registration, "socket removed");
    const second = await register("gpu.example.com", gpu);
    // A later message is published: what the delay would have removed is there all along.
    gpu.report(4);
    await eventually(() => expect(devices()).toHaveLength(4));
    expect(writes.filter(({ method }) => method === "DELETE")).toEqual([]);
    settings.wipeDelay = 1;
    sync.handler.deregister(second, "socket removed");
    await eventually(() => expect(devices()).toEqual([]));
    await eventually(() => expect(sync.status()).toEqual([]));
  });

  it("after a restart of the agent: waits before it deletes, changes nothing of a driver that registers again", async () => {
    const first = await setUp();
    const [gpu, nic] = [await first.driver("gpu.example.com"), await first.driver("nic.example.com")];
    gpu.report(3);
    nic.report(2);
    await first.register("gpu.example.com", gpu);
    await first.register("nic.example.com", nic);
    await eventually(() => expect(first.devices()).toHaveLength(5));
    await first.stop();
    const before = first.writes.length;
    const second = await setUp({ server: first.server, settings: { settleTime: 86_400_000 } });
    await second.register("gpu.example.com", gpu);
    gpu.report(4);
    await eventually(() => expect(second.devices()).toHaveLength(6));
    expect(first.writes.slice(before).map(({ method }) => method)).toEqual(["PUT"]);
    await second.stop();
    const third = await setUp({ server: first.server });
    await third.register("gpu.example.com", gpu);
    await eventually(() => expect(third.devices()).toHaveLength(4));
    expect(first.writes.slice(before).map(({ method }) => method)).toEqual(["PUT", "DELETE"]);
  });

  it("does not touch slices that it did not publish", async () => {
    const { server, slices } = await setUp();
    const foreign = (name: string, nodeName: string, labels = {}) => ({
      apiVersion: "resource.k8s.io/v1",
      kind: "ResourceSlice",
      metadata: { name, labels },
      spec: {
        driver: "gpu.example.com",
        nodeName,
        pool: { name: nodeName, generation: 1, resourceSliceCount: 1 },
        devices: [],
      },
    });
    server.store.put(foreign("of-a-driver", NODE));
    server.store.put(foreign("of-another-node", "worker-2"));
    // Of an earlier agent process, for a driver that does not register any more: this one is deleted.
    server.store.put(foreign("left-behind", NODE, managedByLabel));
    await eventually(() =>
      expect(slices().map(({ metadata }) => metadata.name)).toEqual(["of-a-driver", "of-another-node"]),
    );
  });

  it("puts back what another client removed or changed", async () => {
    const { startDriver, devices, server, slices } = await setUp();
    await startDriver("gpu.example.com", 3);
    await eventually(() => expect(devices()).toHaveLength(3));
    const [slice] = slices();
    server.store.delete(SLICES, slice!.metadata.name!);
    await eventually(() =>
      expect(slices()[0]?.metadata.uid ?? slice!.metadata.uid).not.toBe(slice!.metadata.uid),
    );
    const [now] = slices();
    server.store.put({ ...now!, spec: { ...(now!.spec as object), devices: [] } });
    await eventually(() => expect(devices()).toHaveLength(3));
  });

  it("writes the newest when the API server is back, few times", async () => {
    const { startDriver, devices, setFaults, writes, sync } = await setUp();
    const gpu = await startDriver("gpu.example.com", 3);
    await eventually(() => expect(devices()).toHaveLength(3));
    setFaults(({ method }) => (method === "GET" ? undefined : { status: 503, body: {} }));
    const before = writes.length;
    for (let count = 4; count < 40; count++) await received(sync, () => gpu.report(count));
    await eventually(() => expect(sync.status()[0]!.writeError).toBeDefined());
    expect(writes.length - before).toBeLessThan(36);
    setFaults(undefined);
    await eventually(() => expect(devices()).toHaveLength(39));
  });

  it("quarantines an invalid device, and reports it once", async () => {
    const { startDriver, devices, sync, events } = await setUp();
    const gpu = await startDriver("gpu.example.com", [{ name: "good" }, { name: "Bad Name" }]);
    await eventually(() => expect(devices()).toEqual(["good"]));
    await eventually(() =>
      expect(sync.status()).toMatchObject([{ quarantined: 1, problems: [{ device: "Bad Name" }] }]),
    );
    await eventually(() => expect(events).toHaveLength(1));
    gpu.report([{ name: "good" }, { name: "Bad Name" }]);
    // A later message is published: what the one before would have caused is there.
    gpu.report([{ name: "better" }, { name: "Bad Name" }]);
    await eventually(() => expect(devices()).toEqual(["better"]));
    expect(events).toHaveLength(1);
  });

  it("a driver that reports nothing, and then everything", async () => {
    const { startDriver, devices, slices } = await setUp();
    const gpu = await startDriver("gpu.example.com", 0);
    // A slice without devices shows that the driver is there.
    await eventually(() => expect(slices()).toHaveLength(1));
    gpu.report(1_000);
    await eventually(() => expect(devices()).toHaveLength(1_000));
    gpu.report(0);
    await eventually(() => expect(slices()).toHaveLength(1));
    expect(devices()).toEqual([]);
  });

  it("20,000 devices in one message, and one of them changed after that", async () => {
    const { startDriver, devices, writes } = await setUp();
    const gpu = await startDriver("gpu.example.com", 20_000);
    await eventually(() => expect(devices()).toHaveLength(20_000));
    const before = writes.length;
    gpu.report(19_999);
    await eventually(() => expect(devices()).toHaveLength(19_999));
    expect(writes.length - before).toBe(1);
  });

  it("uses a better version of the API once the server has one", async () => {
    let isOld = true;
    const hides = ({ path }: RequestInfo) =>
      isOld && /^\/apis\/resource\.k8s\.io\/(v1|v1beta2)(\/|$)/.test(path)
        ? { status: 404, body: {} }
        : undefined;
    const { startDriver, devices, sync, writes } = await setUp({ faults: hides, recheckMs: 100 });
    const gpu = await startDriver("gpu.example.com", 3);
    await eventually(() => expect(devices()).toHaveLength(3));
    expect(sync.version).toBe("v1beta1");
    isOld = false;
    await eventually(() => expect(sync.version).toBe("v1"));
    await eventually(() => expect(sync.status()[0]?.slices).toHaveLength(1));
    gpu.report(4);
    await eventually(() => expect(devices()).toHaveLength(4));
    expect(writes.at(-1)?.path).toContain("/v1/");
    // What was published by the old version is the same by the new one.
    expect(writes).toHaveLength(2);
  });

  it("watches no slices of a node without drivers and slices, and does once a driver registers", async () => {
    const { driver, register, devices, sync } = await setUp({ recheckMs: 100 });
    await eventually(() => expect(sync.version).toBe("v1"));
    await eventually(() => expect(sync.version).toBeUndefined());
    expect(sync.healthChecks().every((check) => check.check().ok)).toBe(true);
    const gpu = await driver("gpu.example.com");
    gpu.report(3);
    const registration = await register("gpu.example.com", gpu);
    await eventually(() => expect(devices()).toHaveLength(3));
    expect(sync.version).toBe("v1");
    sync.handler.deregister(registration, "it left");
    await eventually(() => expect(devices()).toHaveLength(0));
    await eventually(() => expect(sync.version).toBeUndefined());
  });

  it("a driver that alternates all the time is written now and then, and last as it ends", async () => {
    const { driver, register, devices, sync, writes } = await setUp({
      settings: { minWriteInterval: 200 },
    });
    const gpu = await driver("gpu.example.com");
    await register("gpu.example.com", gpu);
    const startedAt = performance.now();
    for (let at = 0; at < 100; at++) await received(sync, () => gpu.report(at % 2 === 0 ? 5 : 6));
    gpu.report(7);
    await eventually(() => expect(devices()).toHaveLength(7));
    const elapsedMs = performance.now() - startedAt;
    expect(writes.length).toBeLessThanOrEqual(elapsedMs / 200 + 2);
  });
});
