import { type ApiResource, ApiStatusError, type KubeObject } from "@nodekeeper/core/kube";
import { type ErrorCode, NodekeeperError } from "@nodekeeper/core/lib";
import { expect, it } from "vitest";
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
  verbs: ["get", "patch"],
  subresources: ["status"],
});

/** An API whose server has these versions, and whose answer to an apply is `apply`'s. */
function apiOf(versions: string[], apply: (resource: ApiResource, body: KubeObject) => KubeObject) {
  return new ClaimStatusApi({
    resolve: async ({ version }) => (versions.includes(version) ? served(version) : undefined),
    forgetDiscovery: () => {},
    get: async () => stored,
    apply: async (resource, body) => apply(resource, body),
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
    "a missing right for the driver",
    refused("invalid", 422, "FieldValueForbidden"),
    { code: "forbidden", id: "NK1521" },
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
