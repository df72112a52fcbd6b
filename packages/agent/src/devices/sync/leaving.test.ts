import type { KubeObject } from "@nodekeeper/core/kube";
import { eventually } from "@nodekeeper/testing/until";
import { afterEach, describe, expect, it } from "vitest";
import { setUp, specOf, taintingAfter, tearDown } from "../testing/device-cluster.ts";

afterEach(tearDown);

const gpu = "gpu.example.com";

describe("a driver that leaves takes its slices along", () => {
  it("when it registers again as one that publishes by itself", async () => {
    const { startDriver, register, devices, slices, server } = await setUp({
      settings: { wipeDelay: 600_000 },
    });
    const source = await startDriver(gpu, 3);
    await eventually(() => expect(devices()).toHaveLength(3));
    await register(gpu, source, ["v1.DRAPlugin"]);
    await eventually(() => expect(slices()).toEqual([]));
    // What the driver publishes itself is left alone.
    const [own] = [{ ...ownSlice(), metadata: { name: "own" } }];
    server.store.put(own);
    expect(devices()).toEqual(["own-0"]);
    // And once it streams again, it is published again.
    await register(gpu, source);
    await eventually(() => expect(devices()).toEqual(["device-0", "device-1", "device-2"]));
  });

  it("when it does not implement its stream any more, after the delay", async () => {
    const { driver, register, devices, slices, sync } = await setUp();
    const source = await driver(gpu);
    source.report(3);
    const { name } = await register(gpu, source);
    await eventually(() => expect(devices()).toHaveLength(3));
    source.report(0, "unimplemented");
    await register(name, source);
    await eventually(() => expect(slices()).toEqual([]));
    await eventually(() => expect(sync.status()).toMatchObject([{ state: "none", slices: [] }]));
  });

  it("when it deregisters before its first message, after a restart of the agent", async () => {
    const first = await setUp();
    const source = await first.driver(gpu);
    source.report(3);
    await first.register(gpu, source);
    await eventually(() => expect(first.devices()).toHaveLength(3));
    await first.stop();
    const second = await setUp({ server: first.server });
    source.report(3, "silent");
    const registration = await second.register(gpu, source);
    second.sync.handler.deregister(registration, "socket removed");
    await eventually(() => expect(second.slices()).toEqual([]));
    await eventually(() => expect(second.sync.status()).toEqual([]));
  });

  it("and nothing that another client deletes meanwhile comes back", async () => {
    const { startDriver, register, devices, slices, server } = await setUp();
    const source = await startDriver(gpu, 300);
    await eventually(() => expect(devices()).toHaveLength(300));
    await register(gpu, source, ["v1beta1.DRAPlugin"]);
    server.store.delete("resourceslices.resource.k8s.io", slices()[0]?.metadata.name ?? "");
    await eventually(() => expect(slices()).toEqual([]));
    // Another driver's slice is written after whatever would have been written of this one.
    await startDriver("nic.example.com", [{ name: "nic" }]);
    await eventually(() => expect(devices()).toEqual(["nic"]));
  });
});

describe("a driver that is not there when the agent starts", () => {
  const taintsOf = (slices: KubeObject[]) =>
    slices.flatMap((slice) => (specOf(slice).devices ?? []).map(({ taints = [] }) => taints));
  const disconnected = [{ key: "nodekeeper.dev/driver-disconnected", effect: "NoSchedule" }];

  /** A node with the slices of an agent that ran before, with so many devices that taints need another slice. */
  async function afterEarlierAgent() {
    const first = await setUp();
    const source = await first.driver(gpu);
    source.report(100);
    await first.register(gpu, source);
    await eventually(() => expect(first.devices()).toHaveLength(100));
    await first.stop();
    return { server: first.server, source };
  }

  it("has its devices tainted until it registers", async () => {
    const { server, source } = await afterEarlierAgent();
    const settings = { ...taintingAfter(0), settleTime: 600_000 };
    const { slices, register, devices } = await setUp({ server, settings });
    await eventually(() => {
      expect(taintsOf(slices())).toHaveLength(100);
      for (const taints of taintsOf(slices())) expect(taints).toMatchObject(disconnected);
    });
    await register(gpu, source);
    await eventually(() => {
      expect(devices()).toHaveLength(100);
      for (const taints of taintsOf(slices())) expect(taints).toEqual([]);
    });
  });

  it("keeps integers beyond 2^53 digit for digit while its devices are tainted", async () => {
    const first = await setUp();
    const source = await first.driver(gpu);
    source.report([{ name: "device-0", attributes: { serial: { int: 9007199254740993n } } }]);
    await first.register(gpu, source);
    await eventually(() => expect(first.devices()).toHaveLength(1));
    await first.stop();
    const settings = { ...taintingAfter(0), settleTime: 600_000 };
    const { sync } = await setUp({ server: first.server, settings });
    await eventually(() => {
      const attributes = sync.reportedDevice(gpu, "worker-1", "device-0")?.attributes ?? {};
      expect(Object.values(attributes)).toEqual([{ int: 9007199254740993n }]);
    });
  });

  it("has its slices deleted when the time to register is over", async () => {
    const { server } = await afterEarlierAgent();
    const { slices, sync } = await setUp({ server, settings: { ...taintingAfter(0), settleTime: 300 } });
    await eventually(() => expect(slices()).toEqual([]));
    await eventually(() => expect(sync.status()).toEqual([]));
  });
});

describe("a stream of an earlier registration", () => {
  it("is over before the next one starts, and when the agent has stopped", async () => {
    const { driver, register, devices, stop } = await setUp();
    const [one, two] = [await driver("one"), await driver("two")];
    one.report(1);
    two.report(2);
    await register(gpu, one);
    await eventually(() => expect(one.open).toBe(1));
    await register(gpu, two);
    await eventually(() => expect(devices()).toHaveLength(2));
    await eventually(() => expect([one.open, two.open]).toEqual([0, 1]));
    await stop();
    await eventually(() => expect([one.open, two.open]).toEqual([0, 0]));
  });
});

/** A slice that the driver publishes itself. */
function ownSlice() {
  return {
    apiVersion: "resource.k8s.io/v1",
    kind: "ResourceSlice",
    spec: {
      driver: gpu,
      nodeName: "worker-1",
      pool: { name: "worker-1", generation: 1, resourceSliceCount: 1 },
      devices: [{ name: "own-0" }],
    },
  };
}
