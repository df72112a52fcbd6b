import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { CONFIG_MAPS, type Harness, NODE_RESOURCES, NODES, PODS, startServer } from "./testing/server.ts";

let api: Harness;
beforeAll(async () => {
  api = await startServer();
});
afterAll(() => api.server.stop());

const configMap = (name: string, more = {}) => ({ metadata: { name }, data: { a: "1" }, ...more });
const pod = (name: string, more = {}) => ({
  metadata: { name, labels: { app: "web" } },
  spec: { nodeName: "n1", containers: [{ name: "c", image: "i" }], ...more },
});

describe("create, read, update, delete", () => {
  test("a new object gets its identity, and a second one is refused", async () => {
    const made = await api.call("POST", CONFIG_MAPS, configMap("one"));
    expect(made.status).toBe(201);
    expect(made.body).toMatchObject({
      apiVersion: "v1",
      kind: "ConfigMap",
      metadata: { namespace: "default", uid: expect.any(String) },
    });
    expect((await api.call("GET", `${CONFIG_MAPS}/one`)).body).toEqual(made.body);
    const again = await api.call("POST", CONFIG_MAPS, configMap("one"));
    expect(again).toMatchObject({
      status: 409,
      body: { kind: "Status", reason: "AlreadyExists", message: 'configmaps "one" already exists' },
    });
  });

  test("generateName makes names; bad names, kinds and namespaces are refused", async () => {
    const named = await api.call("POST", CONFIG_MAPS, { metadata: { generateName: "gen-" } });
    expect(named.body.metadata.name).toMatch(/^gen-[0-9a-f]{5}$/);
    expect((await api.call("POST", CONFIG_MAPS, configMap("Not_A_Name"))).status).toBe(422);
    expect((await api.call("POST", CONFIG_MAPS, configMap("k", { kind: "Pod" }))).status).toBe(400);
    const elsewhere = await api.call("POST", "/api/v1/namespaces/nowhere/configmaps", configMap("x"));
    expect(elsewhere).toMatchObject({ status: 404, body: { message: 'namespaces "nowhere" not found' } });
    expect((await api.call("POST", CONFIG_MAPS, "{broken")).status).toBe(400);
    expect(
      (await api.call("POST", CONFIG_MAPS, configMap("l", { metadata: { name: "l", labels: [] } }))).status,
    ).toBe(400);
  });

  test("a stale resourceVersion is a conflict, and an update without effect writes nothing", async () => {
    const { body } = await api.call("POST", CONFIG_MAPS, configMap("stale"));
    const next = await api.call("PUT", `${CONFIG_MAPS}/stale`, { ...body, data: { a: "2" } });
    expect(next.status).toBe(200);
    const refused = await api.call("PUT", `${CONFIG_MAPS}/stale`, { ...body, data: { a: "3" } });
    expect(refused).toMatchObject({ status: 409, body: { reason: "Conflict" } });
    const same = await api.call("PUT", `${CONFIG_MAPS}/stale`, next.body);
    expect(same.body.metadata.resourceVersion).toBe(next.body.metadata.resourceVersion);
  });

  test("generation counts changes of the specification only", async () => {
    const propertyNamed = (propertyName: string) => ({ nodeResourceProperties: [{ propertyName }] });
    const made = await api.call("POST", NODE_RESOURCES, {
      metadata: { name: "gen" },
      spec: propertyNamed("p1"),
      status: { topologyPolicy: "t1" },
    });
    expect(made.body).toMatchObject({ metadata: { generation: 1 } });
    expect(made.body.status).toBeUndefined();
    const labelled = await api.patch(`${NODE_RESOURCES}/gen`, "merge", { metadata: { labels: { x: "y" } } });
    expect(labelled.body.metadata.generation).toBe(1);
    const specified = await api.patch(`${NODE_RESOURCES}/gen`, "merge", {
      spec: propertyNamed("p2"),
      status: { topologyPolicy: "t2" },
    });
    expect(specified.body).toMatchObject({ metadata: { generation: 2 }, spec: propertyNamed("p2") });
    expect(specified.body.status).toBeUndefined();
    const status = await api.patch(`${NODE_RESOURCES}/gen/status`, "merge", {
      spec: propertyNamed("p9"),
      status: { topologyPolicy: "t3" },
    });
    expect(status.body).toMatchObject({
      metadata: { generation: 2 },
      spec: propertyNamed("p2"),
      status: { topologyPolicy: "t3" },
    });
  });

  test("a dry run answers as the write would, and stores nothing", async () => {
    expect((await api.call("POST", `${CONFIG_MAPS}?dryRun=All`, configMap("dry"))).status).toBe(201);
    expect((await api.call("GET", `${CONFIG_MAPS}/dry`)).status).toBe(404);
    expect((await api.call("POST", `${CONFIG_MAPS}?dryRun=Some`, configMap("dry"))).status).toBe(400);
  });

  test("the three patches", async () => {
    api.server.seedNode("patched");
    const path = `${NODES}/patched`;
    const json = await api.patch(path, "json", [
      { op: "test", path: "/metadata/name", value: "patched" },
      { op: "add", path: "/metadata/labels/example.com~1a", value: "b" },
      { op: "add", path: "/spec/taints", value: [{ key: "k", effect: "NoSchedule" }] },
    ]);
    expect(json.body).toMatchObject({
      metadata: { labels: { "example.com/a": "b" } },
      spec: { taints: [{ key: "k" }] },
    });
    expect((await api.patch(path, "json", [{ op: "remove", path: "/spec/none" }])).status).toBe(422);
    const strategic = await api.patch(`${path}/status`, "strategic-merge", {
      status: {
        conditions: [
          { type: "Hot", status: "True" },
          { $patch: "delete", type: "Ready" },
        ],
      },
    });
    expect(strategic.body.status.conditions).toEqual([{ type: "Hot", status: "True" }]);
    const merged = await api.patch(path, "merge", { metadata: { labels: { "example.com/a": null } } });
    expect(merged.body.metadata.labels["example.com/a"]).toBeUndefined();
    expect((await api.patch(`${NODE_RESOURCES}/gen`, "strategic-merge", {})).status).toBe(415);
  });
});

describe("deletion", () => {
  test("preconditions must hold", async () => {
    await api.call("POST", CONFIG_MAPS, configMap("guarded"));
    const wrong = await api.call("DELETE", `${CONFIG_MAPS}/guarded`, { preconditions: { uid: "other" } });
    expect(wrong).toMatchObject({ status: 409, body: { reason: "Conflict" } });
    expect((await api.call("DELETE", `${CONFIG_MAPS}/guarded`)).body).toMatchObject({
      kind: "Status",
      status: "Success",
    });
  });

  test("finalizers hold an object until the last is taken off", async () => {
    await api.call(
      "POST",
      CONFIG_MAPS,
      configMap("held", { metadata: { name: "held", finalizers: ["a.b/c"] } }),
    );
    const held = await api.call("DELETE", `${CONFIG_MAPS}/held`);
    expect(held.body.metadata.deletionTimestamp).toBeDefined();
    await api.patch(`${CONFIG_MAPS}/held`, "merge", { metadata: { finalizers: null } });
    expect((await api.call("GET", `${CONFIG_MAPS}/held`)).status).toBe(404);
  });

  test("a running pod goes when its grace period ends; a shorter one shortens it", async () => {
    await api.call("POST", PODS, pod("slow", { terminationGracePeriodSeconds: 40 }));
    const going = await api.call("DELETE", `${PODS}/slow`);
    expect(going.body.metadata).toMatchObject({ deletionGracePeriodSeconds: 40 });
    await api.call("DELETE", `${PODS}/slow`, { gracePeriodSeconds: 10 });
    await api.clock.step(9_000);
    expect((await api.call("GET", `${PODS}/slow`)).status).toBe(200);
    await api.clock.step(2_000);
    expect((await api.call("GET", `${PODS}/slow`)).status).toBe(404);
    await api.call("POST", PODS, pod("fast"));
    await api.call("DELETE", `${PODS}/fast?gracePeriodSeconds=0`);
    expect((await api.call("GET", `${PODS}/fast`)).status).toBe(404);
  });

  test("dependents go with their last owner, and contents with their namespace", async () => {
    const owner = await api.call("POST", CONFIG_MAPS, configMap("owner"));
    const other = await api.call("POST", CONFIG_MAPS, configMap("other-owner"));
    const refer = ({ body }: typeof owner) => ({
      apiVersion: "v1",
      kind: "ConfigMap",
      name: body.metadata.name,
      uid: body.metadata.uid,
    });
    await api.call(
      "POST",
      CONFIG_MAPS,
      configMap("d", { metadata: { name: "d", ownerReferences: [refer(owner), refer(other)] } }),
    );
    await api.call("DELETE", `${CONFIG_MAPS}/owner`);
    expect((await api.call("GET", `${CONFIG_MAPS}/d`)).status).toBe(200);
    await api.call("DELETE", `${CONFIG_MAPS}/other-owner`);
    expect((await api.call("GET", `${CONFIG_MAPS}/d`)).status).toBe(404);
    await api.call("POST", "/api/v1/namespaces", { metadata: { name: "team" } });
    await api.call("POST", "/api/v1/namespaces/team/configmaps", configMap("c"));
    await api.call("DELETE", "/api/v1/namespaces/team");
    expect(
      (await api.call("GET", "/api/v1/configmaps?fieldSelector=metadata.namespace=team")).body.items,
    ).toEqual([]);
  });
});

describe("eviction", () => {
  const ready = { phase: "Running", conditions: [{ type: "Ready", status: "True" }] };
  const evict = (name: string, more = {}) =>
    api.call("POST", `${PODS}/${name}/eviction`, {
      apiVersion: "policy/v1",
      kind: "Eviction",
      metadata: { name },
      ...more,
    });
  const putPod = (name: string, labels: Record<string, string>) =>
    api.server.store.put({
      apiVersion: "v1",
      kind: "Pod",
      ...pod(name),
      metadata: { name, namespace: "default", labels },
      status: ready,
    });

  test("is refused while the budget allows no disruption, with the budget's name", async () => {
    for (const name of ["g1", "g2"]) putPod(name, { app: "guarded" });
    const budgets = "/apis/policy/v1/namespaces/default/poddisruptionbudgets";
    const budget = {
      metadata: { name: "b" },
      spec: { minAvailable: 2, selector: { matchLabels: { app: "guarded" } } },
    };
    await api.call("POST", budgets, budget);
    const refused = await evict("g1");
    expect(refused.status).toBe(429);
    expect(refused.body).toMatchObject({
      reason: "TooManyRequests",
      message: "Cannot evict pod as it would violate the pod's disruption budget.",
      details: {
        causes: [
          {
            reason: "DisruptionBudget",
            message: "The disruption budget b needs 2 healthy pods and has 2 currently",
          },
        ],
      },
    });
    await api.patch(`${budgets}/b`, "merge", { spec: { minAvailable: "50%" } });
    expect((await evict("g1")).status).toBe(201);
    expect((await evict("g2")).status).toBe(429);
    expect((await api.call("GET", `${PODS}/g1`)).body.status.conditions).toContainEqual(
      expect.objectContaining({ type: "DisruptionTarget" }),
    );
  });

  test("a stored allowance is counted down", async () => {
    for (const name of ["s1", "s2"]) putPod(name, { app: "stored" });
    api.server.store.put({
      apiVersion: "policy/v1",
      kind: "PodDisruptionBudget",
      metadata: { name: "s", namespace: "default" },
      spec: { selector: { matchLabels: { app: "stored" } } },
      status: { disruptionsAllowed: 1, desiredHealthy: 1, currentHealthy: 2 },
    });
    expect((await evict("s1")).status).toBe(201);
    expect((await evict("s2")).status).toBe(429);
  });

  test("is refused for a while if the controller has not observed the budget yet", async () => {
    putPod("u1", { app: "unobserved" });
    api.server.store.put({
      apiVersion: "policy/v1",
      kind: "PodDisruptionBudget",
      metadata: { name: "u", namespace: "default", generation: 2 },
      spec: { selector: { matchLabels: { app: "unobserved" } } },
      status: { observedGeneration: 1, disruptionsAllowed: 1, desiredHealthy: 0, currentHealthy: 1 },
    });
    const refused = await evict("u1");
    expect(refused.status).toBe(429);
    expect(refused.body.details).toEqual({
      retryAfterSeconds: 10,
      causes: [
        {
          reason: "DisruptionBudget",
          message: "The disruption budget u is still being processed by the server.",
        },
      ],
    });
  });

  test("obeys delete options: dry run, preconditions, grace", async () => {
    const { metadata } = putPod("o1", { app: "free" });
    expect((await evict("o1", { deleteOptions: { preconditions: { uid: "other" } } })).status).toBe(409);
    expect((await api.call("POST", `${PODS}/o1/eviction?dryRun=All`, {})).status).toBe(201);
    expect(
      (
        await evict("o1", {
          deleteOptions: {
            gracePeriodSeconds: 0,
            preconditions: { uid: metadata.uid, resourceVersion: metadata.resourceVersion },
          },
        })
      ).status,
    ).toBe(201);
    expect((await evict("o1")).status).toBe(404);
  });

  test("consumes the budget before it checks the preconditions", async () => {
    const { metadata } = putPod("v1", { app: "versioned" });
    api.server.store.put({
      apiVersion: "policy/v1",
      kind: "PodDisruptionBudget",
      metadata: { name: "v", namespace: "default" },
      spec: { selector: { matchLabels: { app: "versioned" } } },
      status: { disruptionsAllowed: 1, desiredHealthy: 0, currentHealthy: 1 },
    });
    putPod("v1", { app: "versioned", changed: "yes" });
    const { resourceVersion } = metadata;
    expect((await evict("v1", { deleteOptions: { preconditions: { resourceVersion } } })).status).toBe(409);
    expect((await evict("v1")).status).toBe(429);
  });

  test("of a terminating pod is accepted, needs no budget and changes nothing", async () => {
    putPod("t1", { app: "free" });
    expect((await evict("t1")).status).toBe(201);
    const before = (await api.call("GET", `${PODS}/t1`)).body;
    expect((await evict("t1")).status).toBe(201);
    expect((await api.call("GET", `${PODS}/t1`)).body).toEqual(before);
    const { resourceVersion } = before.metadata;
    const older = { preconditions: { resourceVersion: `${resourceVersion - 1}` } };
    expect((await evict("t1", { deleteOptions: older })).status).toBe(409);
  });
});

describe("kinds", () => {
  test("a device slice is one object in three versions", async () => {
    const base = "/apis/resource.k8s.io";
    const spec = { driver: "d", nodeName: "n1", pool: { name: "p", generation: 1, resourceSliceCount: 1 } };
    const device = { attributes: { model: { string: "x" } } };
    await api.call("POST", `${base}/v1beta1/resourceslices`, {
      metadata: { name: "s" },
      spec: { ...spec, devices: [{ name: "gpu", basic: device }] },
    });
    const newer = await api.call("GET", `${base}/v1/resourceslices/s`);
    expect(newer.body).toMatchObject({
      apiVersion: "resource.k8s.io/v1",
      spec: { devices: [{ name: "gpu", ...device }] },
    });
    const older = await api.call(
      "GET",
      `${base}/v1beta1/resourceslices?fieldSelector=spec.nodeName=n1,spec.driver=d`,
    );
    expect(older.body.items[0].spec.devices).toEqual([{ name: "gpu", basic: device }]);
  });

  test("an event is the same in both its groups", async () => {
    const involvedObject = { kind: "Pod", namespace: "default", name: "p" };
    await api.call("POST", "/api/v1/namespaces/default/events", {
      metadata: { name: "e" },
      involvedObject,
      reason: "R",
      message: "m",
      type: "Warning",
    });
    const { body } = await api.call("GET", "/apis/events.k8s.io/v1/namespaces/default/events/e");
    expect(body).toMatchObject({ apiVersion: "events.k8s.io/v1", regarding: involvedObject, note: "m" });
    const found = await api.call("GET", "/api/v1/events?fieldSelector=involvedObject.name=p,type=Warning");
    expect(found.body.items).toHaveLength(1);
  });

  test("a CustomResourceDefinition is served with its list keys, and withdrawn with its objects", async () => {
    const crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    const parts = { type: "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"] };
    const crd = {
      metadata: { name: "widgets.example.com" },
      spec: {
        group: "example.com",
        scope: "Cluster",
        names: { kind: "Widget", plural: "widgets" },
        versions: [
          {
            name: "v1",
            served: true,
            storage: true,
            schema: { openAPIV3Schema: { properties: { spec: { properties: { parts } } } } },
          },
        ],
      },
    };
    expect((await api.call("POST", crds, { ...crd, metadata: { name: "wrong" } })).status).toBe(422);
    expect((await api.call("POST", crds, crd)).body.status.conditions[1]).toMatchObject({
      type: "Established",
      status: "True",
    });
    const widget = (name: string) => ({
      apiVersion: "example.com/v1",
      kind: "Widget",
      metadata: { name: "w" },
      spec: { parts: [{ name }] },
    });
    await api.apply("/apis/example.com/v1/widgets/w", widget("a"), "alice");
    const { body } = await api.apply("/apis/example.com/v1/widgets/w", widget("b"), "bob");
    expect(body.spec.parts).toEqual([{ name: "a" }, { name: "b" }]);
    await api.call("DELETE", `${crds}/widgets.example.com`);
    expect((await api.call("GET", "/apis/example.com/v1/widgets/w")).status).toBe(404);
  });
});
