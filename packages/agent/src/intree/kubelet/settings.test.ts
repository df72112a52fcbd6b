import { expect, it } from "vitest";
import { parseDeviceZones } from "./settings.ts";

it("reads which zones devices become", () => {
  const entries = ["nvidia.com/gpu=GPU", "example.com/gpu-memory=GPU", "nvidia.com/gpu=GPU"];
  expect([...parseDeviceZones(entries)]).toEqual([
    ["nvidia.com/gpu", "GPU"],
    ["example.com/gpu-memory", "GPU"],
  ]);
});

it.each([
  ["GPU", /expected resource=zoneType/],
  ["=GPU", /expected/],
  ["a=", /expected/],
  ["a=b c", /expected/],
  ["a b=GPU", /expected/],
  ["a=Socket", /expected/],
  ["a=Numa", /expected/],
])("refuses %s", (entry, message) => {
  expect(() => parseDeviceZones([entry])).toThrow(message);
});

it("refuses two types for one resource", () => {
  expect(() => parseDeviceZones(["a=GPU", "a=NIC"])).toThrow(/a already has the type GPU/);
});
