import { describe, expect, it } from "vitest";
import type { DeviceAttributes } from "./claimed-zones.ts";
import { byName, convert, oneSocket, pod, twoSockets } from "./testing/topology.ts";
import type { ZoneInput } from "./topology-zones.ts";

describe("devices of claims", () => {
  const claimed = (device: string, driver = "gpu.example.com") => ({ driver, pool: "worker-1", device });
  const zoneOf = (attributes: DeviceAttributes | undefined, rest: Partial<ZoneInput> = {}) => {
    const pods = [pod("a", { claimed: [claimed("gpu-0")] })];
    const output = convert(twoSockets, { pods }, { deviceAttributes: () => attributes, ...rest });
    return { ...output, zones: byName(output.zones) };
  };
  const name = "DRADevicegpu.example.com/worker-1/gpu-0";

  it("are zones with the pods that hold them, each pod once", () => {
    const pods = [
      pod("a", { claimed: [claimed("gpu-1"), claimed("gpu-0"), claimed("gpu-1")] }),
      pod("b", { claimed: [claimed("gpu-1")] }),
      pod("unknown", { claimed: [claimed("gpu-2")] }),
    ];
    const deviceAttributes = (driver: string, pool: string, device: string) =>
      `${driver} ${pool} ${device}` === "gpu.example.com worker-1 gpu-1"
        ? { "resource.kubernetes.io/numaNode": { int: 1 } }
        : undefined;
    const { zones, unknownPods, problems } = convert(twoSockets, { pods }, { deviceAttributes });
    const requests = { "gpu.example.com": "1" };
    const found = byName(zones);
    expect(found["Socket1/Numa1/DRADevicegpu.example.com/worker-1/gpu-1"]).toEqual({
      type: "DRADevice",
      name: "gpu.example.com/worker-1/gpu-1",
      resources: {},
      allocations: [
        { consumer: "default/a/uid-a", requests },
        { consumer: "default/b/uid-b", requests },
      ],
    });
    expect(found[name]).toEqual({
      type: "DRADevice",
      name: "gpu.example.com/worker-1/gpu-0",
      resources: {},
      allocations: [{ consumer: "default/a/uid-a", requests }],
    });
    expect(Object.keys(found).filter((each) => each.includes("gpu-2"))).toEqual([]);
    expect(found["Socket1/Numa1"]).not.toHaveProperty("allocations");
    expect(unknownPods).toEqual(["default/unknown"]);
    expect(problems).toEqual([]);
  });

  it.each<[string, DeviceAttributes | undefined, string]>([
    ["the standard attribute", { "resource.kubernetes.io/numaNode": { int: 1 } }, "Socket1/Numa1/"],
    [
      "the standard attribute as a list, of which the first is the device's own node",
      { "resource.kubernetes.io/numaNode": { ints: [1n, 0n] } },
      "Socket1/Numa1/",
    ],
    [
      "the standard attribute before the driver's own",
      { numaNode: { int: 0 }, "resource.kubernetes.io/numaNode": { int: 1 } },
      "Socket1/Numa1/",
    ],
    ["the driver's own", { numaNode: { int: 1 } }, "Socket1/Numa1/"],
    ["the driver's own by its full name", { "gpu.example.com/numa": { int: 0 } }, "Socket0/Numa0/"],
    [
      "the name that drivers of network cards agreed on",
      { "dra.net/numaNode": { int: 1 } },
      "Socket1/Numa1/",
    ],
    ["no node, as the kernel writes it", { numaNode: { int: -1 } }, ""],
    ["text", { numaNode: { string: "1" } }, ""],
    ["nothing of it", { "resource.kubernetes.io/pcieRoot": { string: "pci0000:00" } }, ""],
    ["nothing, for they are not published by this agent", undefined, ""],
  ])("have their place by %s", (_, attributes, place) => {
    const { zones, problems } = zoneOf(attributes);
    expect(Object.keys(zones)).toContain(`${place}${name}`);
    expect(problems).toEqual([]);
  });

  it("are beside the sockets and reported if their node does not exist", () => {
    const { zones, problems } = zoneOf({ numaNode: { int: 7 } });
    expect(zones[name]).toBeDefined();
    expect(problems).toEqual([expect.stringMatching(/worker-1\/gpu-0.* is on NUMA node 7/)]);
  });

  it("show the standard attributes of their bus", () => {
    const attributes = {
      "resource.kubernetes.io/pciBusID": { string: "0000:03:00.0" },
      "resource.kubernetes.io/pcieRoot": { string: "pci0000:00" },
      model: { string: "A100" },
    };
    expect(zoneOf(attributes).zones[name]?.attributes).toEqual([
      { name: "resource.kubernetes.io/pcieRoot", value: "pci0000:00" },
      { name: "resource.kubernetes.io/pciBusID", value: "0000:03:00.0" },
    ]);
  });

  it("have the zone type that the configuration gives their driver", () => {
    const { zones } = zoneOf(undefined, { deviceZones: new Map([["gpu.example.com", "GPU"]]) });
    expect(zones["GPUgpu.example.com/worker-1/gpu-0"]).toBeDefined();
  });

  it("of which a kubelet before 1.31 gives no names, and too many of one driver, are reported", () => {
    const shares = Array.from({ length: 1_025 }, (_, at) => claimed(`share-${at}`));
    const pods = [
      pod("a", { claimed: [claimed(""), claimed("nic-0", "nic.example.com"), ...shares] }),
      pod("b", { claimed: [claimed("")] }),
    ];
    const { zones, problems } = convert(oneSocket, { pods });
    expect(Object.keys(byName(zones))).toEqual([
      "DRADevicenic.example.com/worker-1/nic-0",
      "Socket0",
      "Socket0/Numa0",
    ]);
    expect(problems).toEqual([
      expect.stringContaining('1025 devices of driver "gpu.example.com"'),
      "claims without driver, pool and device names in the kubelet's response",
    ]);
  });
});
