import { describe, expect, it } from "vitest";
import type { Device, Driver, DriverClaims } from "../devices/device-state.ts";
import { driverNode } from "./driver-nodes.ts";
import { objectKey, objectNode } from "./object-nodes.ts";
import { nodesByKey, type TreeNode } from "./tree-node.ts";

/** The tree as indented lines. */
function lines({ label, value, note, children }: TreeNode, indent = ""): string[] {
  return [
    `${indent}${[label, value, note && `(${note})`].filter(Boolean).join(" ")}`,
    ...children.flatMap((child) => lines(child, `${indent}  `)),
  ];
}

const object = { object: "node.katalyst.kubewharf.io/v1alpha1/CustomNodeResource", plugins: ["system"] };

describe("a published object", () => {
  it("has its resources with units, its zones with devices, and its properties", () => {
    const content = {
      apiVersion: "node.katalyst.kubewharf.io/v1alpha1",
      kind: "CustomNodeResource",
      metadata: { name: "worker-1", labels: { zone: "a" } },
      spec: {
        nodeResourceProperties: [
          { propertyName: "memory", propertyQuantity: "24684096Ki" },
          { propertyName: "cis", propertyValues: ["avx", "sse"] },
        ],
      },
      status: {
        resources: {
          allocatable: { memory: "22Gi", "example.com/widgets": "14" },
          capacity: { memory: "24Gi", "example.com/widgets": "14" },
        },
        topologyZone: [
          {
            type: "Socket",
            name: "0",
            children: [
              {
                type: "Numa",
                name: "0",
                resources: { capacity: { cpu: "8", memory: "24684096Ki" } },
                allocations: [{ consumer: "default/web/uid-1", requests: { cpu: "2" } }],
                children: [
                  {
                    type: "DRADevice",
                    name: "gpu.example.com/worker-1/gpu-0",
                    allocations: [{ consumer: "default/web/uid-1", requests: { "gpu.example.com": "1" } }],
                  },
                ],
              },
            ],
          },
        ],
      },
    };
    const node = objectNode(object, content);
    expect(lines(node)).toEqual([
      "CustomNodeResource (node.katalyst.kubewharf.io/v1alpha1/CustomNodeResource)",
      "  Resources",
      "    memory 22 GiB (of 24 GiB)",
      "    example.com/widgets 14",
      "  Socket 0",
      "    NUMA node 0",
      "      cpu 8 (2 held by pods)",
      "      memory 23.5 GiB",
      "      Device gpu-0 held",
      "  Properties",
      "    memory 23.5 GiB",
      "    cis avx, sse",
      "  Labels",
      "    zone a",
    ]);
    const keys = nodesByKey(node);
    expect([...keys.values()].find(({ label }) => label === "Device gpu-0")).toMatchObject({
      pods: ["default/web"],
      objectPlugins: ["system"],
    });
  });

  it("whose content is not known or of no such form has no children, and keys are unique", () => {
    for (const content of [undefined, null, 1, [], { status: 3, spec: null }])
      expect(objectNode(object, content).children).toEqual([]);
    const twins = {
      spec: {
        list: [
          { name: "a", value: "1" },
          { name: "a", value: "2" },
        ],
      },
    };
    expect(lines(objectNode(object, twins)).slice(1)).toEqual(["  list", "    a 1", "    a 2"]);
    expect(nodesByKey(objectNode(object, twins)).size).toBe(4);
  });

  it("has values as they are, unless they are amounts of bytes", () => {
    const labels = { build: "20240115", release: "1.10", memory: "16", timeout: "5m" };
    const content = {
      metadata: { generation: 123_456, labels },
      spec: { memory: "24684096Ki", list: [{ name: "limit", value: "12345" }] },
      status: { capacity: { pods: "1234", cpu: "127500m" } },
    };
    expect(lines(objectNode(object, content)).slice(1)).toEqual([
      "  Resources",
      "    pods 1234",
      "    cpu 127.5",
      "  memory 23.5 GiB",
      "  list",
      "    limit 12345",
      "  generation 123456",
      "  Labels",
      "    build 20240115",
      "    release 1.10",
      "    memory 16",
      "    timeout 5m",
    ]);
  });

  it("has what is wrong with a device, and zones at their place only", () => {
    const name = "gpu.example.com/worker-1/gpu-0";
    const content = {
      metadata: { labels: { topologyZone: "a" } },
      status: { topologyZone: [{ type: "DRADevice", name }] },
    };
    const node = objectNode(object, content, { unhealthy: new Map([[name, "too hot"]]) });
    expect(lines(node).slice(1)).toEqual(["  Device gpu-0 unhealthy", "  Labels", "    topologyZone a"]);
    expect(node.children[0]).toMatchObject({ tone: "bad", facts: [["Problem", "too hot"]] });
  });

  it("has a key of its own if two kinds have the same name", () => {
    const kinds = ["v1/Node", "example.com/v1/Node", "example.com/v1/Rack"].map((kind) => ({ object: kind }));
    expect(kinds.map((one) => objectKey(one, kinds))).toEqual(["v1/Node", "example.com/v1/Node", "Rack"]);
    const node = objectNode({ ...object, object: "v1/Node" }, { spec: { a: 1 } }, { key: "v1/Node" });
    expect(node).toMatchObject({ key: "v1/Node", label: "Node", children: [{ key: "v1/Node/spec/a" }] });
  });

  it("says that it can't be written, and is bounded", () => {
    expect(objectNode({ ...object, lastError: "conflict" }, {})).toMatchObject({ tone: "bad" });
    const labels = Object.fromEntries(Array.from({ length: 9_000 }, (_, at) => [`l-${at}`, "x"]));
    const large = objectNode(object, { metadata: { labels } });
    expect(nodesByKey(large).size).toBeLessThan(4_100);
    expect(lines(large).at(-1)).toBe("  More fields are in the tab Objects");
    const topologyZone = Array.from({ length: 2_010 }, (_, at) => ({ type: "Numa", name: `${at}` }));
    expect(lines(objectNode(object, { status: { topologyZone } })).at(-1)).toBe("  10 more zones, not shown");
    let deep: object = {};
    for (let depth = 0; depth < 1_000; depth++) deep = { deep };
    expect(nodesByKey(objectNode(object, { spec: deep })).size).toBeLessThan(20);
  });
});

describe("a driver", () => {
  const driver = {
    name: "gpu.example.com",
    isRegistered: true,
    state: "streaming",
    reported: 2,
    devices: 2,
    quarantined: 0,
    pools: [{ name: "worker-1", devices: 2 }],
    problems: [],
  } as unknown as Driver;
  const claims = {
    claims: [
      { namespace: "default", name: "c", devices: ["worker-1/gpu-0"], pods: ["default/web"], uid: "u" },
    ],
  } as unknown as DriverClaims;
  const device = (name: string, more: Partial<Device> = {}): Device => ({
    pool: "worker-1",
    name,
    attributes: {},
    taints: [],
    slices: [],
    claims: [],
    ...more,
  });

  it("has its pools, and their devices with what holds them", () => {
    const devices = [device("gpu-0", { claims: ["default/c"] }), device("gpu-1", { unhealthy: "too hot" })];
    const node = driverNode(driver, claims, { devices, hasMore: false });
    expect(lines(node)).toEqual([
      "gpu.example.com 2 devices (published)",
      "  Pool worker-1 2 devices (1 held)",
      "    gpu-0 held",
      "    gpu-1 unhealthy",
    ]);
    expect(node.children[0]!.children).toMatchObject([{ pods: ["default/web"] }, { tone: "bad" }]);
  });

  it("says what is not read, what more there is, and what is wrong", () => {
    expect(lines(driverNode(driver, claims, undefined))[1]).toBe("  Reading the devices");
    expect(lines(driverNode(driver, undefined, { devices: [], hasMore: true })).at(-1)).toMatch(
      /tab Devices/,
    );
    expect(driverNode({ ...driver, isRegistered: false }, undefined, undefined)).toMatchObject({
      note: "disconnected",
      tone: "bad",
    });
  });
});
