import { afterAll, beforeAll, expect, test } from "vitest";
import { type Harness, startServer } from "./testing/server.ts";

const CLAIMS = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims";
const device = { driver: "nic.example.com", pool: "worker-1", device: "nic-0" };
const ready = {
  type: "Ready",
  status: "True",
  reason: "Configured",
  message: "",
  lastTransitionTime: "2026-01-01T00:00:00Z",
};

let api: Harness;
beforeAll(async () => {
  api = await startServer();
  const results = [{ request: "req", ...device }];
  api.server.store.put({
    apiVersion: "resource.k8s.io/v1",
    kind: "ResourceClaim",
    metadata: { name: "claim", namespace: "default" },
    spec: {},
    status: { allocation: { devices: { results } } },
  });
});
afterAll(() => api.server.stop());

const apply = (entry: object) =>
  api.apply(
    `${CLAIMS}/claim/status`,
    {
      apiVersion: "resource.k8s.io/v1",
      kind: "ResourceClaim",
      metadata: { name: "claim" },
      status: { devices: [{ ...device, ...entry }] },
    },
    "driver",
  );

test("the status of an allocated device is stored", async () => {
  const entry = {
    conditions: [ready],
    data: { a: 1 },
    networkData: { ips: ["192.0.2.5/24", "2001:db8::5/64"] },
  };
  const { status, body } = await apply(entry);
  expect([status, body.status.devices]).toEqual([200, [{ ...device, ...entry }]]);
});

test.each<[string, object]>([
  ["another device", { device: "nic-1" }],
  ["a share", { shareID: "0b5e3ac4-0f5c-4ed5-9c3b-2c1a4b8a7f10" }],
  ["nine conditions", { conditions: Array.from({ length: 9 }, (_, at) => ({ ...ready, type: `T${at}` })) }],
  ["a condition without a reason", { conditions: [{ ...ready, reason: "" }] }],
  ["data that is too long", { data: { a: "x".repeat(10_240) } }],
  ["an address that is no CIDR", { networkData: { ips: ["192.0.2.5"] } }],
  ["an address twice", { networkData: { ips: ["::1/128", "::1/128"] } }],
  ["a long interface name", { networkData: { interfaceName: "x".repeat(257) } }],
])("%s is refused", async (_, entry) => {
  expect((await apply(entry)).status).toBe(422);
});

test("an entry without a share has a path without one, as in structured-merge-diff", async () => {
  const written = await apply({ data: {} });
  const [{ fieldsV1 }] = written.body.metadata.managedFields;
  expect(Object.keys(fieldsV1["f:status"]["f:devices"])).toEqual([
    'k:{"device":"nic-0","driver":"nic.example.com","pool":"worker-1"}',
  ]);
});
