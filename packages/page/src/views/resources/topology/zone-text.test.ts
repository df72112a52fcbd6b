import { describe, expect, it } from "vitest";
import { holdsText, isDevice, shortName, typeText, unhealthyDevices } from "./zone-text.ts";

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
