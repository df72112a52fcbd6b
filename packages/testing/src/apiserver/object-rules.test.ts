import { afterAll, beforeAll, expect, test } from "vitest";
import { type Harness, startServer } from "./testing/server.ts";

const SLICES = "/apis/resource.k8s.io/v1/resourceslices";

let api: Harness;
beforeAll(async () => {
  api = await startServer();
  api.server.seedNode("worker-1");
});
afterAll(() => api.server.stop());

const patchNode = (patch: object, subresource = "") =>
  api.patch(`/api/v1/nodes/worker-1${subresource}`, "merge", patch);

const taint = { key: "example.com/busy", effect: "NoSchedule" };

test.each([
  ["a key that is no name", [{ ...taint, key: "not a key" }], "metadata.taints[0].key"],
  ["a value that is no label value", [{ ...taint, value: "two words" }], "metadata.taints[0].value"],
  ["another effect", [{ ...taint, effect: "Evict" }], "metadata.taints[0].effect"],
  ["a key and effect twice", [taint, { ...taint, value: "again" }], "metadata.taints[1]"],
])("a Node with a taint with %s is refused", async (_what, taints, field) => {
  const { status, body } = await patchNode({ spec: { taints } });
  expect(status).toBe(422);
  expect(body.details.causes[0].field).toBe(field);
});

test("a Node has two taints of one key with different effects", async () => {
  const { status } = await patchNode({ spec: { taints: [taint, { ...taint, effect: "NoExecute" }] } });
  expect(status).toBe(200);
});

test.each([
  ["a label", { labels: { "example.com/a": "not a value" } }, "metadata.labels"],
  ["the name of a label", { labels: { "-": "v" } }, "metadata.labels"],
  ["the name of an annotation", { annotations: { "a b": "v" } }, "metadata.annotations"],
  ["the size of all annotations", { annotations: { a: "x".repeat(262_145) } }, "metadata.annotations"],
])("an object with %s that is not valid is refused", async (_what, metadata, field) => {
  const { status, body } = await patchNode({ metadata });
  expect(status).toBe(422);
  expect(body.details.causes[0].field).toBe(field);
});

test.each([
  ["-1", 422],
  ["1500m", 422],
  ["2000m", 200],
  ["a lot", 400],
  ["1Zi", 400],
  ["2Ki", 200],
])("a Node with a capacity of %s devices: %i", async (amount, expected) => {
  const { status } = await patchNode({ status: { capacity: { "example.com/widgets": amount } } }, "/status");
  expect(status).toBe(expected);
});

const device = {
  name: "gpu-0",
  attributes: { model: { string: "a" } },
  capacity: { memory: { value: "1Gi" } },
};
const spec = {
  driver: "gpu.example.com",
  nodeName: "worker-1",
  pool: { name: "worker-1", generation: 1, resourceSliceCount: 1 },
  devices: [device],
};
const consumed = { counterSet: "set", counters: { a: { value: "1" } } };
const many = (count: number, more: object = {}) =>
  Array.from({ length: count }, (_, at) => ({ name: `gpu-${at}`, ...more }));
const fields = (count: number) =>
  Object.fromEntries(Array.from({ length: count }, (_, at) => [`a${at}`, { int: at }]));

const create = (name: string, changes: object) =>
  api.call("POST", SLICES, {
    apiVersion: "resource.k8s.io/v1",
    kind: "ResourceSlice",
    metadata: { name },
    spec: { ...spec, ...changes },
  });

test.each([
  ["128 devices", { devices: many(128) }],
  ["64 devices with taints", { devices: many(64, { taints: [taint] }) }],
  ["a pool with a path", { pool: { ...spec.pool, name: "rack/one" } }],
  ["counters", { devices: undefined, sharedCounters: [{ name: "set", counters: { a: { value: "1" } } }] }],
])("a ResourceSlice with %s is stored", async (what, changes) => {
  const { status } = await create(what.replaceAll(" ", "-").toLowerCase(), changes);
  expect(status).toBe(201);
});

test.each([
  ["129 devices", { devices: many(129) }, "spec.devices"],
  ["65 devices with taints", { devices: many(65, { taints: [taint] }) }, "spec.devices"],
  [
    "65 devices with lists",
    { devices: many(65, { attributes: { all: { strings: ["a"] } } }) },
    "spec.devices",
  ],
  ["a device twice", { devices: [device, device] }, "spec.devices[1]"],
  ["a device without a valid name", { devices: [{ name: "GPU 0" }] }, "spec.devices[0].name"],
  ["33 attributes", { devices: [{ name: "a", attributes: fields(33) }] }, "spec.devices[0]"],
  [
    "an attribute without a value",
    { devices: [{ name: "a", attributes: { model: {} } }] },
    "spec.devices[0].attributes[model]",
  ],
  [
    "an attribute with a long value",
    { devices: [{ name: "a", attributes: { model: { string: "ä".repeat(33) } } }] },
    "spec.devices[0].attributes[model].string",
  ],
  [
    "a capacity with a long name",
    { devices: [{ name: "a", capacity: { ["x".repeat(33)]: { value: "1" } } }] },
    "spec.devices[0].capacity",
  ],
  [
    "a version of two numbers",
    { devices: [{ name: "a", attributes: { driver: { version: "1.2" } } }] },
    "spec.devices[0].attributes[driver].version",
  ],
  [
    "an empty list",
    { devices: [{ name: "a", attributes: { all: { ints: [] } } }] },
    "spec.devices[0].attributes[all].ints",
  ],
  [
    "49 values",
    { devices: [{ name: "a", attributes: { all: { ints: Array.from({ length: 49 }, (_, at) => at) } } }] },
    "spec.devices[0]",
  ],
  [
    "a binding condition without a failure",
    { devices: [{ name: "a", bindingConditions: ["Ready"] }] },
    "spec.devices[0]",
  ],
  [
    "a condition that means both",
    { devices: [{ name: "a", bindingConditions: ["Ready"], bindingFailureConditions: ["Ready"] }] },
    "spec.devices[0].bindingFailureConditions",
  ],
  [
    "a counter set twice",
    { devices: [{ name: "a", consumesCounters: [consumed, consumed] }] },
    "spec.devices[0].consumesCounters[1]",
  ],
  [
    "a set without counters",
    { devices: undefined, sharedCounters: [{ name: "set", counters: {} }] },
    "spec.sharedCounters[0].counters",
  ],
  ["a node of a device", { devices: [{ name: "a", nodeName: "worker-1" }] }, "spec.devices[0]"],
  ["allNodes that is false", { nodeName: undefined, allNodes: false }, "spec.allNodes"],
  [
    "a taint of another effect",
    { devices: [{ name: "a", taints: [{ ...taint, effect: "Evict" }] }] },
    "spec.devices[0].taints[0].effect",
  ],
  ["no scope", { nodeName: undefined }, "spec"],
  ["two scopes", { allNodes: true }, "spec"],
  ["a long driver name", { driver: `${"x".repeat(60)}.com` }, "spec.driver"],
  [
    "no slices in its pool",
    { pool: { ...spec.pool, resourceSliceCount: 0 } },
    "spec.pool.resourceSliceCount",
  ],
  ["devices beside counters", { sharedCounters: [{ name: "set" }] }, "spec"],
])("a ResourceSlice with %s is refused", async (_what, changes, field) => {
  const { status, body } = await create("refused", changes);
  expect([status, body.details?.causes[0].field]).toEqual([422, field]);
});

test("pool, driver and node of a ResourceSlice do not change", async () => {
  await create("fixed", {});
  for (const changed of [
    { driver: "other.example.com" },
    { nodeName: "worker-2" },
    { pool: { name: "other" } },
  ]) {
    const patched = await api.patch(`${SLICES}/fixed`, "merge", { spec: changed });
    expect(patched.status).toBe(422);
  }
  const grown = { spec: { pool: { generation: 2 } } };
  const patched = await api.patch(`${SLICES}/fixed`, "merge", grown);
  expect(patched.status).toBe(200);
});
