import { ApiStatusError } from "@nodekeeper/core/kube";
import { NodekeeperError } from "@nodekeeper/core/lib";
import { until } from "@nodekeeper/testing/until";
import { expect, it } from "vitest";
import { ClaimReader } from "./claim-reader.ts";

const claim = { namespace: "default", name: "claim", uid: "uid-1" };
const resource = {
  group: "resource.k8s.io",
  version: "v1beta1",
  kind: "ResourceClaim",
  plural: "resourceclaims",
  namespaced: true,
};

const statusOf = (reason: string, kind: string, name: string) =>
  new ApiStatusError(
    "notFound",
    "GET claim: 404",
    { httpStatus: 404, summary: { reason, kind, name, causes: [] } },
    undefined,
  );

it.each([
  ["a Status that names the claim", statusOf("NotFound", "resourceclaims", "claim"), "notFound", "NK1506"],
  [
    "a path that is not served",
    new NodekeeperError("notFound", "404 page not found"),
    "unavailable",
    "NK1501",
  ],
  ["a resource that is not served", statusOf("NotFound", "", ""), "unavailable", "NK1501"],
  ["JSON of a proxy", statusOf("", "", ""), "unavailable", "NK1501"],
  ["another object", statusOf("NotFound", "namespaces", "claim"), "unavailable", "NK1501"],
])("404 with %s", async (_, error, code, id) => {
  const reader = new ClaimReader({
    resolve: async () => resource,
    forgetDiscovery: () => {},
    get: async () => {
      throw error;
    },
  });
  await expect(reader.read(claim, new AbortController().signal)).rejects.toMatchObject({ code, id });
});

it("a version that the server dropped is discovered once again for all claims, which are read in the next one", async () => {
  const served = { ...resource, version: "v1" };
  // What the client keeps of its last discovery, as an upgrade of the server left it.
  let discovered = new Map([["v1beta1", resource]]);
  let discoveries = 0;
  const versionsAsked: string[] = [];
  const reader = new ClaimReader({
    resolve: async ({ version }) => discovered.get(version),
    forgetDiscovery: () => {
      discoveries++;
      discovered = new Map([["v1", served]]);
    },
    get: async ({ version }, name) => {
      versionsAsked.push(version);
      if (version !== "v1") throw new NodekeeperError("notFound", "404 page not found");
      return { metadata: { namespace: "default", name, uid: "uid-1" } };
    },
  });
  const { signal } = new AbortController();
  const found = await Promise.all([reader.read(claim, signal), reader.read(claim, signal)]);
  expect(found.map(({ metadata }) => metadata.uid)).toEqual(["uid-1", "uid-1"]);
  expect(discoveries).toBe(1);
  expect(versionsAsked).toEqual(["v1beta1", "v1beta1", "v1", "v1"]);
});

it("of many claims four are read at a time, in the order of the calls; one that fails holds up none", async () => {
  const started: string[] = [];
  const reading = new Map<string, PromiseWithResolvers<void>>();
  const reader = new ClaimReader({
    resolve: async () => resource,
    forgetDiscovery: () => {},
    get: async (_, name) => {
      started.push(name);
      const end = Promise.withResolvers<void>();
      reading.set(name, end);
      await end.promise;
      return { metadata: { namespace: "default", name, uid: "uid-1" } };
    },
  });
  const { signal } = new AbortController();
  const names = ["a", "b", "c", "d", "e", "f"];
  const read = names.map((name) => reader.read({ ...claim, name }, signal));
  const settled = Promise.allSettled(read);
  await until("four are read", () => started.length === 4);
  expect(started).toEqual(["a", "b", "c", "d"]);
  reading.get("c")!.resolve();
  await read[2];
  await until("the next one is read", () => started.length === 5);
  reading.get("a")!.reject(new NodekeeperError("unavailable", "connection refused"));
  await until("the last one is read", () => started.length === 6);
  expect(started).toEqual(names);
  for (const end of reading.values()) end.resolve();
  expect((await settled).map(({ status }) => status)).toEqual([
    "rejected",
    ...names.slice(1).map(() => "fulfilled"),
  ]);
});
