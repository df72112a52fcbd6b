import { NodekeeperError } from "@nodekeeper/core/lib";
import { expect, it } from "vitest";
import type { Kubectl } from "../kubectl.ts";
import { searchPods } from "./search-pods.ts";

const { signal } = new AbortController();

function pod(name: string, { namespace = "default", node = "n1", controller = true } = {}) {
  return {
    metadata: {
      ...{ namespace, name, uid: `uid-${name}`, creationTimestamp: "2026-11-22T08:00:00Z" },
      ownerReferences: [{ kind: "ReplicaSet", name: "web", controller }],
    },
    spec: node === "" ? {} : { nodeName: node },
    status: { phase: "Running" },
  };
}

/** Searches pages of pods; returns the paths that were asked. */
async function search(text: string, pages: object[][], forbidden: (path: string) => boolean = () => false) {
  const paths: string[] = [];
  const kubectl: Partial<Kubectl> = {
    async run([, , path = ""]) {
      paths.push(path);
      if (forbidden(path)) throw new NodekeeperError("forbidden", "pods is forbidden");
      const at = Number(/continue=(\d+)/.exec(path)?.[1] ?? 0);
      const next = at + 1 < pages.length ? { continue: String(at + 1) } : {};
      return JSON.stringify({ metadata: next, items: pages[at] });
    },
  };
  const found = searchPods(kubectl as Kubectl, text, async () => "team-a", signal);
  return { found: await found, paths };
}

it("finds pods by a part of the name or by UID, through all pages", async () => {
  const pages = [[pod("web-1"), pod("db")], [pod("web-2", { node: "", controller: false })]];
  const { found, paths } = await search("web", pages);
  const common = { namespace: "default", phase: "Running", createdAt: Date.parse("2026-11-22T08:00:00Z") };
  expect(found).toEqual({
    items: [
      { ...common, name: "web-1", uid: "uid-web-1", node: "n1", owner: "ReplicaSet web" },
      { ...common, name: "web-2", uid: "uid-web-2", node: "" },
    ],
    searched: 3,
    hasMore: false,
  });
  expect(paths).toEqual(["/api/v1/pods?limit=500", "/api/v1/pods?limit=500&continue=1"]);
  expect((await search("uid-db", pages)).found.items.map(({ name }) => name)).toEqual(["db"]);
});

it("searches the namespace alone that the text begins with", async () => {
  const { found, paths } = await search("kube-system/co", [[pod("coredns", { namespace: "kube-system" })]]);
  expect(found.items).toHaveLength(1);
  expect(paths).toEqual(["/api/v1/namespaces/kube-system/pods?limit=500"]);
});

it("searches the user's namespace without the right to list the pods of all, and says so", async () => {
  const { found } = await search("web", [[pod("web-1")]], (path) => path.startsWith("/api/v1/pods"));
  expect(found).toMatchObject({ namespace: "team-a", searched: 1 });
  await expect(search("other/web", [[]], () => true)).rejects.toThrow(/forbidden/);
});

it("ends once it has found enough, and says that there may be more", async () => {
  const many = (from: number) => Array.from({ length: 80 }, (_, at) => pod(`web-${from + at}`));
  const { found, paths } = await search("web", [many(0), many(80), many(160)]);
  expect([found.items.length, found.hasMore, paths.length]).toEqual([100, true, 2]);
});
