import { describe, expect, it } from "vitest";
import type { Machine } from "./machine.ts";
import {
  byName,
  convert,
  GiB,
  gpus,
  memory,
  nothing,
  oneSocket,
  pod,
  twoSockets,
} from "./testing/topology.ts";

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

  it("are attributes of NUMA nodes", () => {
    const zones = byName(convert(machine, {}).zones);
    expect(zones["Socket0/Numa0"]).toMatchObject({ attributes: [distance("10,12,32")] });
    expect(zones["Socket1/Numa2"]).toMatchObject({ attributes: [distance("32,32,10")] });
  });

  // The cases of katalyst's GetSiblingNumaInfo: the nearest nodes, if they are not farther than the maximum.
  const siblings = (...names: string[]) => names.map((name) => ({ type: "Numa", name }));
  it.each<[number, Record<string, unknown>]>([
    [0, {}],
    [11, {}],
    [12, { "Socket0/Numa0": siblings("1"), "Socket0/Numa1": siblings("0") }],
    [31, { "Socket0/Numa0": siblings("1"), "Socket0/Numa1": siblings("0") }],
    [
      32,
      {
        "Socket0/Numa0": siblings("1"),
        "Socket0/Numa1": siblings("0"),
        "Socket1/Numa2": siblings("0", "1"),
      },
    ],
  ])("make the nearest nodes siblings up to a distance of %d", (siblingNumaMaxDistance, expected) => {
    const zones = byName(convert(machine, {}, { siblingNumaMaxDistance }).zones);
    const found = Object.entries(zones).flatMap(([name, { siblings }]) =>
      siblings ? [[name, siblings]] : [],
    );
    expect(Object.fromEntries(found)).toEqual(expected);
  });

  it("threads of one core, and CPUs that the kubelet reserves, are attributes of their node", () => {
    const threads: Machine = [
      {
        id: 0,
        cpus: [0, 1, 4, 5],
        socket: 0,
        threadSiblings: [
          [0, 4],
          [1, 5],
          [4, 0],
          [5, 1],
        ],
      },
      { id: 1, cpus: [2, 3], socket: 1 },
    ];
    const attributes = (cpus: number[]) =>
      Object.values(byName(convert(threads, { allocatable: { ...nothing, cpus } }).zones)).flatMap(
        ({ attributes }) => attributes ?? [],
      );
    const topology = { name: "thread_topology_info", value: "0:4,1:5,4:0,5:1" };
    expect(attributes([3, 5])).toEqual([
      topology,
      { name: "reserved_cpu_list", value: "0-1,4" },
      { name: "reserved_cpu_list", value: "2" },
    ]);
    // Without a static CPU manager the kubelet lists no CPUs: which it reserves is not known.
    expect(attributes([])).toEqual([topology]);
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
