import { describe, expect, it } from "vitest";
import { holdsText, isDevice, rowsOfZones, shortName, typeText, unhealthyDevices } from "./zone-text.ts";

describe("texts of zones", () => {
  it("names a device of a claim by its last part", () => {
    expect(shortName("gpu.example.com/node-1/gpu-0")).toBe("gpu-0");
    expect(shortName("a/b")).toBe("a/b");
  });

  it("lists what a pod holds", () => {
    const holds = [
      { resource: "cpu", amount: 2, text: "2" },
      { resource: "memory", amount: 4 * 2 ** 30, text: "4Gi" },
      { resource: "odd", amount: undefined, text: "many" },
    ];
    expect(holdsText({ holds })).toBe("cpu 2, memory 4 GiB, odd many");
  });

  it("finds what is wrong with a device by the name of its zone", () => {
    const driver = {
      driver: "gpu.example.com",
      kubelet: "registered" as const,
      isPreparing: true,
      claims: [],
    };
    const hot = { pool: "node-1", device: "gpu-0", healthy: false, message: "too hot", taintEffect: "" };
    expect([...unhealthyDevices([{ ...driver, unhealthy: [hot] }])]).toEqual([
      ["gpu.example.com/node-1/gpu-0", "too hot"],
    ]);
  });

  it("knows devices from parts of the machine", () => {
    expect(["Socket", "Numa", "L3CacheGroup", "GPU", "DRADevice"].map((type) => isDevice({ type }))).toEqual([
      false,
      false,
      false,
      true,
      true,
    ]);
    expect(["Numa", "GPU"].map(typeText)).toEqual(["NUMA node", "GPU"]);
  });
});

it("zones are exported with a row for each of their resources, and for each device", () => {
  const none = { resources: [], attributes: [], holders: [], children: [] };
  const holder = { namespace: "default", name: "train", uid: "u" };
  const zones = [
    {
      ...none,
      ...{ key: "a", type: "Socket", name: "0" },
      resources: [{ name: "cpu", capacity: 4, allocatable: undefined, held: 2 }],
      holders: [{ ...holder, holds: [{ resource: "cpu", amount: 2, text: "2" }] }],
      children: [
        { ...none, key: "b", type: "GPU", name: "d/p/gpu-0", attributes: [{ name: "model", value: "x" }] },
      ],
    },
  ];
  expect(rowsOfZones(zones, new Map([["d/p/gpu-0", "too hot"]]))).toEqual([
    {
      ...{ Zone: "Socket 0", "Held by": ["default/train: cpu 2"], Attributes: [], Unhealthy: null },
      ...{ Resource: "cpu", Capacity: 4, Allocatable: null, Held: 2 },
    },
    { Zone: "Socket 0 / GPU d/p/gpu-0", "Held by": [], Attributes: ["model=x"], Unhealthy: "too hot" },
  ]);
});
