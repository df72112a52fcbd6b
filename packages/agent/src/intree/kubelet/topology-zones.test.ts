import { describe, expect, it } from "vitest";
import type { Devices, KubeletAnswer, MemoryBlock, PodHolding } from "./answer.ts";
import type { DeviceAttributes } from "./claimed-zones.ts";
import type { Machine } from "./machine.ts";
import { topologyZones, type ZoneInput } from "./topology-zones.ts";

const GiB = 1024 ** 3;
const oneSocket: Machine = [{ id: 0, cpus: [0, 1, 2, 3], memoryBytes: 8 * GiB, socket: 0 }];
const twoSockets: Machine = [
  { id: 0, cpus: [0, 1, 4, 5], memoryBytes: 64 * GiB, socket: 0 },
  { id: 1, cpus: [2, 3, 6, 7], memoryBytes: 32 * GiB, socket: 1 },
];
const nothing = { devices: [], cpus: [], memory: [] };

const pod = (name: string, held: Partial<PodHolding>): PodHolding => ({
  ...nothing,
  claimed: [],
  namespace: "default",
  name,
  ...held,
});
const gpus = (ids: string[], ...nodes: number[]): Devices => ({ resource: "example.com/gpu", ids, nodes });
const memory = (gib: number, ...nodes: number[]): MemoryBlock => ({
  type: "memory",
  bytes: BigInt(gib * GiB),
  nodes,
});

function convert(machine: Machine, answer: Partial<KubeletAnswer>, rest: Partial<ZoneInput> = {}) {
  return topologyZones({
    machine,
    answer: { allocatable: nothing, pods: [], ...answer },
    deviceZones: new Map([
      ["example.com/gpu", "GPU"],
      ["example.com/gpu-memory", "GPU"],
    ]),
    deviceAttributes: () => undefined,
    podUid: (_, name) => (name.startsWith("unknown") ? undefined : `uid-${name}`),
    ...rest,
  });
}

/** The zones below sockets, by type and name. */
function byName(zones: ReturnType<typeof convert>["zones"]) {
  const all: Record<string, (typeof zones)[number]> = {};
  const visit = (list: typeof zones, path: string) => {
    for (const zone of list) {
      const at = `${path}${zone.type}${zone.name}`;
      all[at] = zone;
      visit(zone.children ?? [], `${at}/`);
    }
  };
  visit(zones, "");
  return all;
}

describe("distances and caches", () => {
  const machine: Machine = [
    {
      id: 0,
      cpus: [0, 1, 2, 3],
      socket: 0,
      distances: [10, 12, 32],
      cacheGroups: [
        { id: 0, cpus: [0, 1] },
        { id: 5, cpus: [2, 3] },
      ],
    },
    { id: 1, cpus: [4, 5], socket: 0, distances: [12, 10, 32] },
    { id: 2, cpus: [6, 7], socket: 1, distances: [32, 32, 10] },
  ];
  const distance = (value: string) => ({ name: "numa_distance", value });

  it("are attributes of NUMA nodes, and those of one socket are siblings", () => {
    const zones = byName(convert(machine, {}).zones);
    expect(zones["Socket0/Numa0"]).toMatchObject({
      attributes: [distance("10,12,32")],
      siblings: [{ type: "Numa", name: "1", attributes: [distance("12")] }],
    });
    expect(zones["Socket0/Numa1"]).toMatchObject({ siblings: [{ type: "Numa", name: "0" }] });
    expect(zones["Socket1/Numa2"]).toMatchObject({ attributes: [distance("32,32,10")] });
    expect(zones["Socket1/Numa2"]).not.toHaveProperty("siblings");
  });

  it("are zones below the NUMA node, with the CPUs that are free and held", () => {
    const { zones } = convert(machine, {
      allocatable: { ...nothing, cpus: [1, 2, 3, 4] },
      pods: [pod("a", { cpus: [2, 3] })],
    });
    const found = byName(zones);
    expect(found["Socket0/Numa0/L3CacheGroup0"]).toEqual({
      type: "L3CacheGroup",
      name: "0",
      resources: { capacity: { cpu: "2" }, allocatable: { cpu: "1" } },
      attributes: [{ name: "cpu_lists", value: "0-1" }],
    });
    expect(found["Socket0/Numa0/L3CacheGroup5"]).toMatchObject({
      resources: { allocatable: { cpu: "2" } },
      allocations: [{ consumer: "default/a/uid-a", requests: { cpu: "2" } }],
    });
    expect(found["Socket0/Numa0"]).toMatchObject({ resources: { allocatable: { cpu: "3" } } });
  });
});

describe("the tree", () => {
  it("is the machine's alone while the kubelet manages nothing", () => {
    expect(convert(oneSocket, {})).toEqual({
      zones: [
        {
          type: "Socket",
          name: "0",
          resources: {},
          children: [{ type: "Numa", name: "0", resources: { capacity: { cpu: "4", memory: "8Gi" } } }],
        },
      ],
      unknownPods: [],
      problems: [],
    });
  });

  it("has nodes below their sockets, by number, and nodes of memory alone beside them", () => {
    const machine: Machine = [
      ...[10, 2, 1].map((id) => ({ id, cpus: [id], socket: id === 10 ? 11 : 2 })),
      { id: 3, cpus: [], memoryBytes: GiB },
    ];
    const { zones } = convert(machine, {});
    const names = zones.map(({ type, name, children = [] }) => [
      `${type}${name}`,
      ...children.map((child) => child.name),
    ]);
    expect(names).toEqual([["Numa3"], ["Socket2", "1", "2"], ["Socket11", "10"]]);
    expect(zones[0]?.resources).toEqual({ capacity: { cpu: "0", memory: "1Gi" } });
  });

  it("has a zone for each device of a mapped resource", () => {
    const answer = {
      allocatable: {
        ...nothing,
        devices: [
          gpus(["g1"], 1),
          gpus(["g0"], 0),
          { resource: "example.com/gpu-memory", ids: ["g0"], nodes: [0] },
          { resource: "example.com/nic", ids: ["n0", "n1"], nodes: [0] },
        ],
      },
      pods: [pod("a", { devices: [gpus(["g1"], 1)] })],
    };
    const zones = byName(convert(twoSockets, answer).zones);
    expect(Object.keys(zones)).toEqual([
      "Socket0",
      "Socket0/Numa0",
      "Socket0/Numa0/GPUg0",
      "Socket1",
      "Socket1/Numa1",
      "Socket1/Numa1/GPUg1",
    ]);
    const both = { "example.com/gpu": "1", "example.com/gpu-memory": "1" };
    expect(zones["Socket0/Numa0/GPUg0"]).toEqual({
      type: "GPU",
      name: "g0",
      resources: { capacity: both, allocatable: both },
    });
    expect(zones["Socket0/Numa0"]?.resources.allocatable).toEqual({ ...both, "example.com/nic": "2" });
    const held = [{ consumer: "default/a/uid-a", requests: { "example.com/gpu": "1" } }];
    expect(zones["Socket1/Numa1/GPUg1"]?.allocations).toEqual(held);
    expect(zones["Socket1/Numa1"]?.allocations).toEqual(held);
  });

  it("shows a device near to two nodes on both, as one, and one near to none beside the sockets", () => {
    const devices = [gpus(["both"], 0, 1), gpus(["none"])];
    const zones = byName(convert(twoSockets, { allocatable: { ...nothing, devices } }).zones);
    const one = { capacity: { "example.com/gpu": "1" }, allocatable: { "example.com/gpu": "1" } };
    expect(zones["Socket0/Numa0/GPUboth"]?.resources).toEqual(one);
    expect(zones["Socket1/Numa1/GPUboth"]?.resources).toEqual(one);
    expect(zones.GPUnone?.resources).toEqual(one);
    expect(zones["Socket0/Numa0"]?.resources.capacity?.["example.com/gpu"]).toBe("1");
  });

  it("counts the devices of a resource that has too many for zones", () => {
    const ids = Array.from({ length: 1_025 }, (_, at) => `share-${at}`);
    const { zones, problems } = convert(oneSocket, { allocatable: { ...nothing, devices: [gpus(ids, 0)] } });
    expect(byName(zones)["Socket0/Numa0"]?.children).toBeUndefined();
    expect(byName(zones)["Socket0/Numa0"]?.resources.capacity?.["example.com/gpu"]).toBe("1025");
    expect(problems).toEqual([expect.stringContaining("1025 devices")]);
  });
});

describe("CPUs", () => {
  it("are counted by node; one that is named twice by a pod counts once", () => {
    const answer = {
      allocatable: { ...nothing, cpus: [1, 4, 5, 2, 3] },
      pods: [pod("a", { cpus: [1, 2, 1] }), pod("b", { cpus: [4] })],
    };
    const zones = byName(convert(twoSockets, answer).zones);
    expect(zones["Socket0/Numa0"]?.resources).toEqual({
      capacity: { cpu: "4", memory: "64Gi" },
      allocatable: { cpu: "3" },
    });
    expect(zones["Socket0/Numa0"]?.allocations).toEqual([
      { consumer: "default/a/uid-a", requests: { cpu: "1" } },
      { consumer: "default/b/uid-b", requests: { cpu: "1" } },
    ]);
    expect(zones["Socket1/Numa1"]?.allocations).toEqual([
      { consumer: "default/a/uid-a", requests: { cpu: "1" } },
    ]);
  });

  it("are zero on a node whose CPUs are all kept back, and unknown where the kubelet manages none", () => {
    const some = byName(convert(twoSockets, { allocatable: { ...nothing, cpus: [0] } }).zones);
    expect(some["Socket1/Numa1"]?.resources.allocatable).toEqual({ cpu: "0" });
    const none = byName(convert(twoSockets, {}).zones);
    expect(none["Socket1/Numa1"]?.resources.allocatable).toBeUndefined();
  });
});

describe("memory", () => {
  const allocatable = {
    ...nothing,
    memory: [memory(60, 0), memory(30, 1), { type: "hugepages-2Mi", bytes: BigInt(4 * GiB), nodes: [1] }],
  };
  const held = (zones: ReturnType<typeof convert>["zones"], node: number) =>
    byName(zones)[`Socket${node}/Numa${node}`]?.allocations?.map(({ consumer, requests }) => [
      consumer.split("/")[1],
      requests,
    ]);

  it("is the machine's in all and the kubelet's to give; huge pages are all the kubelet's", () => {
    const zones = byName(convert(twoSockets, { allocatable }).zones);
    expect(zones["Socket1/Numa1"]?.resources).toEqual({
      capacity: { cpu: "4", "hugepages-2Mi": "4Gi", memory: "32Gi" },
      allocatable: { "hugepages-2Mi": "4Gi", memory: "30Gi" },
    });
  });

  it("of several nodes fills them by number, after blocks of single nodes", () => {
    const pods = [pod("wide", { memory: [memory(50, 0, 1)] }), pod("a", { memory: [memory(20, 0)] })];
    const { zones } = convert(twoSockets, { allocatable, pods });
    expect(held(zones, 0)).toEqual([
      ["a", { memory: "20Gi" }],
      ["wide", { memory: "40Gi" }],
    ]);
    expect(held(zones, 1)).toEqual([["wide", { memory: "10Gi" }]]);
  });

  it("that exceeds all there is stays visible", () => {
    const pods = [pod("a", { memory: [memory(100, 0, 1)] })];
    const { zones } = convert(twoSockets, { allocatable, pods });
    expect(held(zones, 0)).toEqual([["a", { memory: "60Gi" }]]);
    expect(held(zones, 1)).toEqual([["a", { memory: "40Gi" }]]);
  });
});

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

describe("what is odd", () => {
  it("a pod without a UID is named, and its device stays a device", () => {
    const pods = [pod("unknown", { devices: [gpus(["sick"], 0)] }), pod("unknown-idle", {})];
    const { zones, unknownPods } = convert(oneSocket, { pods });
    expect(unknownPods).toEqual(["default/unknown"]);
    expect(byName(zones)["Socket0/Numa0/GPUsick"]).toEqual({
      type: "GPU",
      name: "sick",
      resources: { capacity: { "example.com/gpu": "1" }, allocatable: { "example.com/gpu": "0" } },
    });
  });

  it("a device that fell sick while it is held counts for the capacity alone", () => {
    const answer = {
      allocatable: { ...nothing, devices: [gpus(["well"], 0)] },
      pods: [pod("a", { devices: [gpus(["sick"], 0)] })],
    };
    const node = byName(convert(oneSocket, answer).zones)["Socket0/Numa0"];
    expect(node?.resources.capacity?.["example.com/gpu"]).toBe("2");
    expect(node?.resources.allocatable?.["example.com/gpu"]).toBe("1");
    expect(node?.allocations).toHaveLength(1);
  });

  it("nodes, CPUs and resources that do not exist are reported, and the others are used", () => {
    const answer = {
      allocatable: {
        cpus: [0, 99],
        devices: [gpus(["g0"], 7), { resource: "", ids: ["x"], nodes: [0] }],
        memory: [memory(1, 9), memory(1), memory(2, 0)],
      },
    };
    const { zones, problems } = convert(oneSocket, answer);
    expect(problems).toEqual([
      '"example.com/gpu" is on NUMA node 7, which does not exist',
      '"memory" is on NUMA nodes 9, not all of which exist',
      '"memory" is on no NUMA node',
      "CPU 99 is not online",
      "devices of a resource without a name",
    ]);
    expect(byName(zones)["Socket0/Numa0"]?.resources.allocatable).toEqual({ cpu: "1", memory: "2Gi" });
    expect(byName(zones).GPUg0).toBeDefined();
  });
});
