import { describe, expect, it } from "vitest";
import { readZones } from "./zones.ts";

const gpu = {
  type: "GPU",
  name: "gpu-0",
  resources: { capacity: { "example.com/gpu": "1" }, allocatable: { "example.com/gpu": "1" } },
  allocations: [{ consumer: "default/train/uid-1", requests: { "example.com/gpu": "1" } }],
};
const numa = {
  type: "Numa",
  name: "0",
  resources: { capacity: { cpu: "8", memory: "16Gi" }, allocatable: { cpu: "6" } },
  attributes: [{ name: "numa_distance", value: "10,21" }],
  allocations: [
    { consumer: "default/train/uid-1", requests: { cpu: "2" } },
    { consumer: "kube-system/dns/uid-2", requests: { cpu: "500m" } },
  ],
  children: [gpu],
};
const cnr = (topologyZone: unknown) => ({ kind: "CustomNodeResource", status: { topologyZone } });

describe("readZones", () => {
  it("nests devices in NUMA nodes in sockets, and sums what pods hold", () => {
    const { zones, left } = readZones(cnr([{ type: "Socket", name: "0", resources: {}, children: [numa] }]));
    expect(left).toBe(0);
    const [socket] = zones;
    expect(socket).toMatchObject({ type: "Socket", name: "0", resources: [], holders: [] });
    const [node] = socket!.children;
    expect(node!.resources).toEqual([
      { name: "cpu", capacity: 8, allocatable: 6, held: 2.5 },
      { name: "memory", capacity: 16 * 2 ** 30, allocatable: undefined, held: 0 },
    ]);
    expect(node!.attributes).toEqual([{ name: "numa_distance", value: "10,21" }]);
    expect(node!.children[0]).toMatchObject({
      type: "GPU",
      holders: [{ namespace: "default", name: "train", uid: "uid-1" }],
    });
  });

  it("has no zones of an object without them, or of none", () => {
    for (const object of [undefined, null, {}, { status: 1 }, cnr({}), cnr([1, null, {}])])
      expect(readZones(object)).toEqual({ zones: [], left: 0 });
  });

  it("leaves out what is not of the form of a zone, and keeps the rest", () => {
    const odd = {
      type: "Numa",
      name: 1,
      resources: "many",
      allocations: [{ consumer: "x" }, 3],
      children: 7,
    };
    expect(readZones(cnr([odd])).zones).toMatchObject([
      { type: "Numa", name: "1", resources: [], holders: [], children: [] },
    ]);
  });

  it("draws a bounded number of zones and counts the others", () => {
    const many = Array.from({ length: 2_100 }, (_, at) => ({ type: "GPU", name: String(at) }));
    const { zones, left } = readZones(cnr(many));
    expect([zones.length, left]).toEqual([2_000, 100]);
    let deep: object = { type: "Numa", name: "leaf" };
    for (let depth = 0; depth < 20; depth++) deep = { type: "Numa", name: String(depth), children: [deep] };
    expect(readZones(cnr([deep])).left).toBe(1);
  });

  it("zones of equal names have keys of their own", () => {
    const twins = readZones(cnr([gpu, gpu])).zones;
    expect(new Set(twins.map(({ key }) => key)).size).toBe(2);
  });
});
