import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type Harness, NODE_RESOURCES, NODES, PODS, startServer } from "./testing/server.ts";

let api: Harness;
beforeEach(async () => {
  api = await startServer();
});
afterEach(() => api[Symbol.asyncDispose]());

const pod = (spec: object) => ({
  metadata: { name: "web" },
  spec: { containers: [{ name: "main", image: "web:1" }], ...spec },
});
const misspelt = pod({ restartPolicie: "Never", containers: [{ name: "main", imagee: "web:1" }] });

/** The Warning headers of the answer to a request. */
async function warningsOf(path: string, body: object): Promise<string | null> {
  const response = await fetch(api.url + path, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  expect(response.status).toBe(201);
  return response.headers.get("warning");
}

describe("a misspelt field", () => {
  it("is refused with Strict, all of them named", async () => {
    expect(await api.call("POST", `${PODS}?fieldValidation=Strict`, misspelt)).toMatchObject({
      status: 400,
      body: {
        reason: "BadRequest",
        message:
          'Pod in version "v1" cannot be handled as a Pod: strict decoding error: unknown field "spec.containers[0].imagee", unknown field "spec.restartPolicie"',
      },
    });
  });

  it("is dropped with a warning without it, silently with Ignore", async () => {
    expect(await warningsOf(PODS, misspelt)).toBe(
      '299 - "unknown field \\"spec.containers[0].imagee\\"", 299 - "unknown field \\"spec.restartPolicie\\""',
    );
    expect(api.server.store.get("pods", "web", "default")?.spec).toEqual({ containers: [{ name: "main" }] });
    const other = { ...misspelt, metadata: { name: "other" } };
    expect(await warningsOf(`${PODS}?fieldValidation=Ignore`, other)).toBe(null);
  });

  it("is refused by server-side apply as kube-apiserver does", async () => {
    api.server.seedNode("n1");
    expect(await api.apply(`${NODES}/n1`, { metadata: { lables: { a: "b" } } }, "me")).toMatchObject({
      status: 500,
      body: {
        message:
          "failed to create typed patch object (/n1; v1, Kind=Node): .metadata.lables: field not declared in schema",
      },
    });
  });

  it("is found in patches", async () => {
    await api.call("POST", PODS, pod({}));
    const patch = { spec: { priorityy: 1 } };
    expect(await api.patch(`${PODS}/web?fieldValidation=Strict`, "merge", patch)).toMatchObject({
      status: 400,
      body: { message: expect.stringContaining('unknown field "spec.priorityy"') },
    });
  });

  it("is found in custom resources, by their definition's schema", async () => {
    const status = { resources: { capacitty: { "example.com/fans": "4" } } };
    await api.call("POST", NODE_RESOURCES, { metadata: { name: "n1" } });
    expect(await api.apply(`${NODE_RESOURCES}/n1/status`, { status }, "me")).toMatchObject({
      status: 500,
      body: { message: expect.stringContaining(".status.resources.capacitty: field not declared in schema") },
    });
  });

  it("is nothing that a client can set fieldValidation to", async () => {
    expect(await api.call("POST", `${PODS}?fieldValidation=Lax`, pod({}))).toMatchObject({ status: 400 });
  });
});

it("a part of a custom resource is applied without what the definition requires and has a default for", async () => {
  await api.call("POST", NODE_RESOURCES, { metadata: { name: "n1" } });
  const status = { resources: { capacity: { "example.com/fans": "4" } } };
  const answer = await api.apply(`${NODE_RESOURCES}/n1/status`, { status }, "me");
  expect(answer).toMatchObject({ status: 200, body: { status } });
});

it("a quantity of a custom resource is a string or an integer, as its definition says", async () => {
  await api.call("POST", NODE_RESOURCES, { metadata: { name: "n2" } });
  const apply = (fans: unknown) =>
    api.apply(`${NODE_RESOURCES}/n2/status`, { status: { resources: { capacity: { fans } } } }, "me");
  for (const fans of ["4.5", 4]) expect(await apply(fans)).toMatchObject({ status: 200 });
  const { status, body } = await apply(4.5);
  expect([status, body.message]).toEqual([
    422,
    expect.stringContaining("status.resources.capacity.fans: expected string or integer, got number"),
  ]);
});

describe("a value of a wrong type", () => {
  it.each([
    [{ priority: "high" }, "spec.priority: expected integer, got string"],
    [{ priority: 1.5 }, "spec.priority: expected integer, got number"],
    [{ hostNetwork: "yes" }, "spec.hostNetwork: expected boolean, got string"],
    [{ nodeSelector: { zone: 4 } }, "spec.nodeSelector.zone: expected string, got number"],
    [{ containers: { name: "main" } }, "spec.containers: expected array, got object"],
    [{ containers: ["main"] }, "spec.containers[0]: expected object, got string"],
    [
      { containers: [{ name: "main", resources: { requests: { cpu: true } } }] },
      "spec.containers[0].resources.requests.cpu: expected string or number, got boolean",
    ],
    [
      { containers: [{ name: "main", livenessProbe: { httpGet: { port: 80.5 } } }] },
      "spec.containers[0].livenessProbe.httpGet.port: expected string or integer, got number",
    ],
  ])("%j is refused, whatever the validation", async (spec, message) => {
    expect(await api.call("POST", `${PODS}?fieldValidation=Ignore`, pod(spec))).toMatchObject({
      status: 400,
      body: { message: `Pod in version "v1" cannot be handled as a Pod: ${message}` },
    });
  });

  it("takes quantities and ports as texts and numbers, times, and null for what is absent", async () => {
    const probe = { httpGet: { port: "http" }, initialDelaySeconds: null };
    const resources = { requests: { cpu: 1.5, memory: "64Mi" } };
    const spec = { containers: [{ name: "main", livenessProbe: probe, resources }] };
    expect((await api.call("POST", `${PODS}?fieldValidation=Strict`, pod(spec))).status).toBe(201);
    const status = { startTime: "tomorrow" };
    const answer = await api.call("PUT", `${PODS}/web/status`, { ...pod(spec), status });
    expect(answer.body.message).toContain('status.startTime: expected a time as of RFC 3339, got "tomorrow"');
  });

  it.each([
    "2026",
    "2026-11-22",
    "Nov 22 2026",
    "2026-11-22T10:00:00",
    "2026-11-22 10:00:00Z",
    "2026-02-30T10:00:00Z",
    "2026-11-22T24:00:00Z",
    "",
  ])("%j is not a time", async (startTime) => {
    await api.call("POST", PODS, pod({}));
    expect(await api.call("PUT", `${PODS}/web/status`, { ...pod({}), status: { startTime } })).toMatchObject({
      status: 400,
      body: { message: expect.stringContaining("status.startTime: expected a time as of RFC 3339, got") },
    });
  });

  it.each(["2024-02-29T10:00:00Z", "2026-11-22T10:00:00+01:00", "2026-11-22T23:59:59.123456789-07:30"])(
    "%j is a time",
    async (startTime) => {
      await api.call("POST", PODS, pod({}));
      const status = { startTime };
      expect((await api.call("PUT", `${PODS}/web/status`, { ...pod({}), status })).status).toBe(200);
    },
  );

  it("takes a time in microseconds with all of its digits only", async () => {
    const leases = "/apis/coordination.k8s.io/v1/namespaces/default/leases";
    const lease = (name: string, renewTime: string) => ({ metadata: { name }, spec: { renewTime } });
    for (const refused of ["2026-11-22T10:00:00Z", "2026-11-22T10:00:00.123Z"])
      expect(await api.call("POST", leases, lease("a", refused))).toMatchObject({
        status: 400,
        body: { message: expect.stringContaining("with six digits of a second") },
      });
    for (const [name, taken] of Object.entries({
      b: "2026-11-22T10:00:00.123456Z",
      c: "2026-11-22T10:00:00.000000+01:00",
    }))
      expect((await api.call("POST", leases, lease(name, taken))).status).toBe(201);
  });
});

describe("a custom kind", () => {
  const things = "/apis/example.com/v1/things";
  beforeEach(async () => {
    const properties = {
      spec: {
        type: "object",
        required: ["size"],
        properties: {
          size: { type: "string", enum: ["small", "large"] },
          count: { type: "integer", minimum: 1, maximum: 3 },
          code: { type: "string", pattern: "^[a-z]+$" },
          extra: { type: "object", "x-kubernetes-preserve-unknown-fields": true },
        },
      },
    };
    const version = {
      name: "v1",
      served: true,
      storage: true,
      schema: { openAPIV3Schema: { type: "object", properties } },
    };
    const answer = await api.call("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", {
      metadata: { name: "things.example.com" },
      spec: {
        group: "example.com",
        scope: "Cluster",
        names: { kind: "Thing", plural: "things" },
        versions: [version],
      },
    });
    expect(answer.status).toBe(201);
  });

  it("is checked by its own schema", async () => {
    const create = (spec: object) =>
      api.call("POST", `${things}?fieldValidation=Strict`, { metadata: { name: "a" }, spec });
    const wrong: [object, string][] = [
      [{ size: "huge" }, 'spec.size: unsupported value "huge": supported values: "small", "large"'],
      [{ count: 1 }, "spec.size: required value"],
      [{ size: "small", count: 4 }, "spec.count: more than 3"],
      [{ size: "small", count: 0 }, "spec.count: less than 1"],
      [{ size: "small", code: "A" }, 'spec.code: "A" does not match ^[a-z]+$'],
      [{ size: 4 }, "spec.size: expected string, got number"],
    ];
    for (const [spec, message] of wrong) {
      const { status, body } = await create(spec);
      expect([status, body.message]).toEqual([422, expect.stringContaining(message)]);
    }
    const applied = await api.apply(`${things}/a`, { spec: { count: 1 } }, "me");
    expect([applied.status, applied.body.message]).toEqual([
      422,
      expect.stringContaining("spec.size: required value"),
    ]);
    expect((await create({ size: "small", sise: 1 })).body.message).toContain('unknown field "spec.sise"');
    expect((await create({ size: "small", extra: { any: [1, "x"] } })).status).toBe(201);
    expect((await api.apply(`${things}/a`, { spec: { count: 1 } }, "me")).status).toBe(200);
  });
});
