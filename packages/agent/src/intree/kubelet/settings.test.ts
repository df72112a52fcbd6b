import { readLeaf, settings } from "@nodekeeper/api/settings";
import { expect, it } from "vitest";
import { parseDeviceZones } from "./settings.ts";

const deviceZones = settings.find(({ path }) => path === "reporting.kubelet.deviceZones")!;

it("reads which zones devices become", () => {
  expect(readLeaf(deviceZones, ["nvidia.com/gpu=GPU"])).toEqual(["nvidia.com/gpu=GPU"]);
  const entries = ["nvidia.com/gpu=GPU", "example.com/gpu-memory=GPU", "nvidia.com/gpu=GPU"];
  expect([...parseDeviceZones(entries)]).toEqual([
    ["nvidia.com/gpu", "GPU"],
    ["example.com/gpu-memory", "GPU"],
  ]);
});

it.each(["GPU", "=GPU", "a=", "a=b c", "a b=GPU", "a=Socket", "a=Numa"])(
  "the setting refuses %s",
  (entry) => {
    expect(readLeaf(deviceZones, [entry])).toBeUndefined();
  },
);

it("refuses two types for one resource", () => {
  expect(() => parseDeviceZones(["a=GPU", "a=NIC"])).toThrow(/a already has the type GPU/);
});
