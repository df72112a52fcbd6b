import { type ApiResource, ApiStatusError, type KubeObject } from "@nodekeeper/core/kube";
import { type ErrorCode, NodekeeperError } from "@nodekeeper/core/lib";
import { describe, expect, it } from "vitest";
import { ClaimStatusApi } from "./claim-status-api.ts";

const claim = { namespace: "default", name: "claim", uid: "uid-1" };
const device = { driver: "nic.example.com", pool: "worker-1", device: "nic-0" };
const condition = { type: "Ready", status: "True", reason: "Configured", message: "" };
const options = { manager: "nodekeeper/nic.example.com/worker-1", now: Date.UTC(2026, 0, 1) };
const stored = { metadata: { ...claim }, status: { devices: [device] } };
const { signal } = new AbortController();

const served = (version: string): ApiResource => ({
  group: "resource.k8s.io",
  version,
  kind: "ResourceClaim",
  plural: "resourceclaims",
  namespaced: true,
});

/** An API whose server has these versions, and whose answer to an apply is `apply`'s. */
function apiOf(
  versions: string[],
  apply: (resource: ApiResource, body: KubeObject) => KubeObject,
  found: KubeObject = stored,
) {
  return new ClaimStatusApi({
    resolve: async ({ version }) => (versions.includes(version) ? served(version) : undefined),
    forgetDiscovery: () => {},
    get: async () => found,
    apply: async (resource, body) => apply(resource, body),
    jsonPatch: async () => {
      throw new Error("not expected");
    },
  });
}

it.each([["v1"], ["v1beta2"], ["v1beta1"]])(
  "applies in %s, the most recent version served",
  async (version) => {
    const bodies: unknown[] = [];
    const api = apiOf(
      ["v1", "v1beta2", "v1beta1"].slice(["v1", "v1beta2", "v1beta1"].indexOf(version)),
      (...call) => {
        bodies.push(call);
        return stored;
      },
    );
    expect(await api.apply(claim, [{ ...device, conditions: [condition] }], options, signal)).toBe("stored");
    const conditions = [{ ...condition, lastTransitionTime: "2026-01-01T00:00:00Z" }];
    const body = { metadata: claim, status: { devices: [{ ...device, conditions }] } };
    expect(bodies).toEqual([[served(version), body]]);
  },
);

it("entries for the claim as it was read are not applied to one that has changed since", async () => {
  const bodies: KubeObject[] = [];
  const found = { ...stored, metadata: { ...claim, resourceVersion: "7" } };
  const api = apiOf(
    ["v1"],
    (_resource, body) => {
      bodies.push(body);
      return stored;
    },
    found,
  );
  await api.apply(claim, () => [device], options, signal);
  await api.apply(claim, [device], options, signal);
  expect(bodies.map(({ metadata }) => metadata.resourceVersion)).toEqual(["7", undefined]);
});

it("a version that the server has dropped since is discovered again", async () => {
  const versions = ["v1beta1"];
  const api = apiOf(versions, ({ version }) => {
    if (version === "v1") return stored;
    versions.splice(0, 1, "v1");
    throw new NodekeeperError("notFound", "404 page not found");
  });
  expect(await api.apply(claim, [device], options, signal)).toBe("stored");
});

it("a server that does not store the entries is noticed", async () => {
  const api = apiOf(["v1"], () => ({ metadata: claim }));
  expect(await api.apply(claim, [device], options, signal)).toBe("dropped");
});

const refused = (code: ErrorCode, httpStatus: number, reason: string) =>
  new ApiStatusError(
    code,
    "refused",
    {
      httpStatus,
      summary: { reason: "", kind: "resourceclaims", name: "claim", causes: [{ reason, message: "" }] },
    },
    undefined,
  );

it.each<[string, Error, object]>([
  [
    "a missing right for the driver, or a forbidden field of the claim",
    refused("invalid", 422, "FieldValueForbidden"),
    { code: "invalid", id: "NK1521" },
  ],
  ["a missing right for the status", refused("forbidden", 403, ""), { code: "forbidden", id: "NK1521" }],
  [
    "another owner of a field",
    refused("conflict", 409, "FieldManagerConflict"),
    { code: "conflict", id: "NK1521" },
  ],
  ["an invalid value", refused("invalid", 422, "FieldValueInvalid"), { code: "invalid" }],
])("%s", async (_, error, expected) => {
  const api = apiOf(["v1"], () => {
    throw error;
  });
  await expect(api.apply(claim, [device], options, signal)).rejects.toMatchObject(expected);
});

describe("a claim whose allocation the API server changes in an apply", () => {
  const { manager } = options;
  const other = { driver: "other.example.com", pool: "p", device: "d" };
  const keyOf = ({ driver, pool, device: name }: typeof device) =>
    `k:${JSON.stringify({ device: name, driver, pool })}`;
  const managed = (by: string, operation: string, ...entries: (typeof device)[]) => ({
    manager: by,
    operation,
    subresource: "status",
    fieldsV1: { "f:status": { "f:devices": Object.fromEntries(entries.map((each) => [keyOf(each), {}])) } },
  });
  const changed = new ApiStatusError(
    "invalid",
    "PATCH: 422: status.allocation: Invalid value: {}: field is immutable",
    {
      httpStatus: 422,
      summary: {
        reason: "Invalid",
        kind: "resourceclaims",
        name: "claim",
        causes: [{ reason: "FieldValueInvalid", message: "Invalid value: {}: field is immutable" }],
      },
    },
    undefined,
  );
  const tests = [
    { op: "test", path: "/metadata/uid", value: "uid-1" },
    { op: "test", path: "/metadata/resourceVersion", value: "7" },
  ];

  /** An API of which every apply is refused, with the patches that it gets. */
  function refusing(devices: object[] | undefined, managedFields: object[]) {
    const calls: string[] = [];
    const patches: unknown[] = [];
    const metadata = { ...claim, resourceVersion: "7", managedFields };
    const found = { metadata, status: { allocation: {}, ...(devices && { devices }) } } as KubeObject;
    const api = new ClaimStatusApi({
      resolve: async () => served("v1"),
      forgetDiscovery: () => {},
      get: async () => found,
      apply: async () => {
        calls.push("apply");
        throw changed;
      },
      jsonPatch: async (_resource, name, patch, { fieldManager, namespace, subresource } = {}) => {
        calls.push("patch");
        expect([name, namespace, subresource, fieldManager]).toEqual(["claim", "default", "status", manager]);
        patches.push(patch);
        return { ...found, status: { devices: [device] } };
      },
    });
    return { api, calls, patches };
  }

  it("gets its first entry by a patch of nothing else", async () => {
    const { api, calls, patches } = refusing(undefined, []);
    expect(await api.apply(claim, [device], options, signal)).toBe("stored");
    expect(calls).toEqual(["apply", "patch"]);
    const added = [
      { op: "add", path: "/status/devices", value: [] },
      { op: "add", path: "/status/devices/-", value: device },
    ];
    expect(patches).toEqual([[...tests, ...added]]);
  });

  it("keeps entries of other clients where they are, and loses those of ours that are gone", async () => {
    const gone = { ...device, device: "nic-9" };
    const { api, calls, patches } = refusing(
      [gone, other, device],
      [managed("someone", "Apply", other), managed(manager, "Update", gone, device)],
    );
    const data = { mtu: 9000 };
    const next = { ...device, device: "nic-1" };
    await api.apply(claim, [{ ...device, data }, next], options, signal);
    // No apply removes what a patch has written.
    expect(calls).toEqual(["patch"]);
    expect(patches).toEqual([
      [
        ...tests,
        { op: "replace", path: "/status/devices/2", value: { ...device, data } },
        { op: "remove", path: "/status/devices/0" },
        { op: "add", path: "/status/devices/-", value: next },
      ],
    ]);
  });

  it("loses all entries of ours when it is unprepared, and then nothing is written any more", async () => {
    const last = refusing([device], [managed(manager, "Update", device)]);
    expect(await last.api.apply(claim, [], options, signal)).toBe("removed");
    expect(last.patches).toEqual([[...tests, { op: "remove", path: "/status/devices/0" }]]);
  });

  it("an entry of another client is not taken over", async () => {
    const { api, patches } = refusing([device], [managed("someone", "Apply", device)]);
    const failed = api.apply(claim, [device], options, signal);
    await expect(failed).rejects.toMatchObject({ id: "NK1521", code: "conflict" });
    expect(patches).toEqual([]);
  });
});
