import { afterAll, beforeAll, expect, test } from "vitest";
import { CONFIG_MAPS, type Harness, NODE_RESOURCES, NODES, startServer } from "./testing/server.ts";

let api: Harness;
beforeAll(async () => {
  api = await startServer();
});
afterAll(() => api.server.stop());

const configMap = (name: string, data: unknown, metadata = {}) => ({
  apiVersion: "v1",
  kind: "ConfigMap",
  metadata: { name, ...metadata },
  data,
});

test("apply makes a missing object, then changes it, and writes nothing when nothing changes", async () => {
  const path = `${CONFIG_MAPS}/made`;
  const first = await api.apply(path, configMap("made", { a: "1" }), "alice");
  expect(first.status).toBe(201);
  expect(first.body.metadata.managedFields).toMatchObject([
    { manager: "alice", operation: "Apply", apiVersion: "v1", fieldsV1: { "f:data": { "f:a": {} } } },
  ]);
  await api.clock.step(5000);
  const same = await api.apply(path, configMap("made", { a: "1" }), "alice");
  expect(same.body).toEqual(first.body);
  const changed = await api.apply(path, configMap("made", { a: "2" }), "alice");
  expect(changed.status).toBe(200);
  expect(changed.body.metadata.resourceVersion).not.toBe(first.body.metadata.resourceVersion);
  expect(changed.body.metadata.managedFields[0].time).not.toBe(first.body.metadata.managedFields[0].time);
});

test("apply withdraws what its manager no longer applies, and only that", async () => {
  const path = `${CONFIG_MAPS}/shared`;
  await api.apply(path, configMap("shared", { a: "1", both: "x" }, { labels: { mine: "yes" } }), "alice");
  await api.apply(path, configMap("shared", { b: "1", both: "x" }), "bob");
  const { body } = await api.apply(path, configMap("shared", {}), "alice");
  expect(body.data).toEqual({ b: "1", both: "x" });
  expect(body.metadata.labels).toBeUndefined();
});

test("withdrawing a map that was applied without members leaves the members that nobody applied", async () => {
  const path = `${CONFIG_MAPS}/empty`;
  await api.apply(path, configMap("empty", {}, { labels: {} }), "alice");
  const live = api.server.store.get("configmaps", "empty", "default")!;
  api.server.store.put({ ...live, metadata: { ...live.metadata, labels: { theirs: "yes" } } });
  const { body } = await api.apply(path, configMap("empty", {}), "alice");
  expect(body.metadata.labels).toEqual({ theirs: "yes" });
});

test("changing another manager's field is a conflict that names it; force takes it over", async () => {
  const path = `${CONFIG_MAPS}/fought`;
  await api.apply(path, configMap("fought", { a: "1", b: "1" }), "alice");
  const refused = await api.apply(path, configMap("fought", { a: "2" }), "bob");
  expect(refused.status).toBe(409);
  expect(refused.body).toMatchObject({
    reason: "Conflict",
    message: 'Apply failed with 1 conflict: conflict with "alice": .data.a',
    details: {
      causes: [{ reason: "FieldManagerConflict", message: 'conflict with "alice"', field: ".data.a" }],
    },
  });
  const forced = await api.apply(path, configMap("fought", { a: "2" }), "bob", "&force=true");
  expect(forced.status).toBe(200);
  const fieldsOf = (manager: string) =>
    forced.body.metadata.managedFields.find((entry: { manager: string }) => entry.manager === manager)
      .fieldsV1;
  expect(fieldsOf("alice")).toEqual({ "f:data": { "f:b": {} } });
  expect(fieldsOf("bob")).toEqual({ "f:data": { "f:a": {} } });
});

test("a plain update takes the fields it changes from their appliers", async () => {
  const path = `${CONFIG_MAPS}/updated`;
  await api.apply(path, configMap("updated", { a: "1", b: "1" }), "alice");
  await api.patch(`${path}?fieldManager=carol`, "merge", { data: { a: "3" } });
  const refused = await api.apply(path, configMap("updated", { a: "1", b: "1" }), "alice");
  expect(refused.status).toBe(409);
  expect(refused.body.message).toMatch(/conflict with "carol" using v1 at .*: \.data\.a$/);
});

test("two managers share a list keyed by type", async () => {
  api.server.seedNode("keyed");
  const status = (conditions: unknown) => ({
    apiVersion: "v1",
    kind: "Node",
    metadata: { name: "keyed" },
    status: { conditions },
  });
  const path = `${NODES}/keyed/status`;
  await api.apply(path, status([{ type: "DiskBad", status: "False" }]), "alice");
  const both = await api.apply(path, status([{ type: "FanBad", status: "True" }]), "bob");
  const types = (body: typeof both.body) => body.status.conditions.map(({ type }: { type: string }) => type);
  expect(types(both.body).sort()).toEqual(["DiskBad", "FanBad", "Ready"]);
  const without = await api.apply(path, status([]), "alice");
  expect(types(without.body).sort()).toEqual(["FanBad", "Ready"]);
});

test("the list of a CustomNodeResource's properties belongs to one manager as a whole", async () => {
  const object = (value: string) => ({
    apiVersion: "node.katalyst.kubewharf.io/v1alpha1",
    kind: "CustomNodeResource",
    metadata: { name: "n" },
    spec: { nodeResourceProperties: [{ propertyName: "cpu", propertyQuantity: value }] },
  });
  await api.apply(`${NODE_RESOURCES}/n`, object("1"), "alice");
  const { body } = await api.apply(`${NODE_RESOURCES}/n`, object("2"), "bob");
  expect(body.details.causes[0].field).toBe(".spec.nodeResourceProperties");
});

const propertyNamed = (propertyName: string) => ({ nodeResourceProperties: [{ propertyName }] });

test("an applied spec leaves the status to the status subresource, and the reverse", async () => {
  const base = {
    apiVersion: "node.katalyst.kubewharf.io/v1alpha1",
    kind: "CustomNodeResource",
    metadata: { name: "parts" },
  };
  const missing = await api.apply(
    `${NODE_RESOURCES}/parts/status`,
    { ...base, status: { topologyPolicy: "none" } },
    "a",
  );
  expect(missing.status).toBe(404);
  const made = await api.apply(
    `${NODE_RESOURCES}/parts`,
    { ...base, spec: propertyNamed("p1"), status: { topologyPolicy: "t1" } },
    "a",
  );
  expect(made.body.status).toBeUndefined();
  const { body } = await api.apply(
    `${NODE_RESOURCES}/parts/status`,
    { ...base, spec: propertyNamed("p2"), status: { topologyPolicy: "t2" } },
    "a",
  );
  expect(body).toMatchObject({
    spec: propertyNamed("p1"),
    status: { topologyPolicy: "t2" },
    metadata: { generation: 1 },
  });
  expect(body.metadata.managedFields).toMatchObject([
    { manager: "a", fieldsV1: { "f:spec": { "f:nodeResourceProperties": {} } } },
    { manager: "a", subresource: "status", fieldsV1: { "f:status": { "f:topologyPolicy": {} } } },
  ]);
});

test("apply needs a field manager and no managedFields of its own; YAML is taken", async () => {
  const path = `${CONFIG_MAPS}/strict`;
  const headers = { "content-type": "application/apply-patch+yaml" };
  expect((await api.call("PATCH", path, configMap("strict", {}), headers)).status).toBe(422);
  const owned = configMap("strict", {}, { managedFields: [{ manager: "x" }] });
  expect((await api.apply(path, owned, "a")).status).toBe(400);
  const yaml = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: strict\ndata:\n  __proto__: kept\n";
  const { status, body } = await api.call("PATCH", `${path}?fieldManager=a`, yaml, headers);
  expect(status).toBe(201);
  expect(Object.hasOwn(body.data, "__proto__")).toBe(true);
});
