import type { KubeObject } from "@nodekeeper/core/kube";
import { FakeClock } from "@nodekeeper/core/lib";
import { expect, test } from "vitest";
import { encodeSlice } from "../index.ts";
import { storedSlice } from "../model/versions.ts";
import { driver, nodeName } from "../testing/slice-store.ts";
import { EVERY_DRIVER } from "./context.ts";
import { ServerFeatures } from "./server-features.ts";
import { managedByLabel } from "./slice-api.ts";
import { SliceCache } from "./slice-cache.ts";

const resource = {
  group: "resource.k8s.io",
  version: "v1",
  kind: "ResourceSlice",
  plural: "resourceslices",
  namespaced: false,
};

function setUp() {
  const foreign: string[] = [];
  const clock = new FakeClock();
  const cache = new SliceCache({
    api: { version: "v1", resource },
    nodeName,
    features: new ServerFeatures(),
    clock,
    queue: { add: (name) => void (name !== EVERY_DRIVER && foreign.push(name)) },
  });
  cache.onReplace([], "1");
  return { cache, foreign, clock };
}

function slice(resourceVersion: number, name = "a", uid = name): KubeObject {
  const metadata = { name, uid, resourceVersion: `${resourceVersion}`, labels: { ...managedByLabel } };
  return encodeSlice("v1", metadata, {
    driver,
    nodeName,
    pool: { name: "p", generation: 1, resourceSliceCount: 1 },
    devices: [],
  });
}
const eventOf = (type: string, { apiVersion, kind, metadata, spec }: KubeObject) =>
  JSON.stringify({ type, object: { kind, apiVersion, metadata, spec } });
const write = (cache: SliceCache, object: KubeObject) => cache.wrote(object, storedSlice("v1", object));

test("what a list lacks is deleted only where the list is newer than the write", () => {
  const { cache, foreign } = setUp();
  write(cache, slice(7));
  cache.onReplace([], "6");
  expect([cache.size, foreign]).toEqual([1, []]);
  cache.onReplace([], "7");
  expect([cache.size, foreign]).toEqual([0, [driver]]);
});

test("after a restore of etcd, slices are as the older server has them, and those that came later are gone", () => {
  const { cache } = setUp();
  write(cache, slice(7, "a"));
  write(cache, slice(8, "b"));
  cache.onUpsert(slice(9, "b"));
  cache.onDelete(slice(10, "c"));
  cache.onReplace([slice(3, "a"), slice(4, "c")], "5");
  expect(cache.of(driver).map(({ name }) => name)).toEqual(["a", "c"]);
  // Not older than what is known.
  cache.takeForeignChange(driver);
  cache.onUpsert(slice(6, "a"));
  expect(cache.takeForeignChange(driver)).toBeDefined();
});

test("a list for comparison may be older than the watch", () => {
  const { cache } = setUp();
  write(cache, slice(7));
  cache.onReplace([slice(7)], "8");
  cache.compare([], "6");
  expect(cache.size).toBe(1);
});

test("changes of another client count from the first of them until they are taken", async () => {
  const { cache, clock } = setUp();
  for (const name of ["a", "b"]) write(cache, slice(7, name));
  expect(cache.takeForeignChange(driver)).toBeUndefined();
  const firstAt = clock.monotonic();
  cache.onDelete(slice(8, "a"));
  await clock.step(300);
  cache.onDelete(slice(9, "b"));
  expect(cache.takeForeignChange(driver)).toBe(firstAt);
  expect(cache.takeForeignChange(driver)).toBeUndefined();
});

test("the watch's report of a write under way is held until its answer is there", () => {
  const { cache, foreign } = setUp();
  cache.expect("a");
  cache.onUpsert(slice(7));
  expect(cache.size).toBe(0);
  write(cache, slice(7));
  cache.arrived("a");
  expect([cache.size, foreign]).toEqual([1, []]);
  // A change of another client meanwhile is one.
  cache.expect("a");
  cache.onUpsert(slice(9));
  write(cache, slice(8));
  cache.arrived("a");
  expect(foreign).toEqual([driver]);
});

test.each<[string, (cache: SliceCache) => void]>([
  ["the watch reports", (cache) => cache.onDelete(slice(9))],
  ["a list lacks", (cache) => cache.onReplace([], "9")],
])("what %s before the answer to its write is there is another client's deletion", (_, deletion) => {
  const { cache, foreign } = setUp();
  cache.expect("a");
  cache.onUpsert(slice(7));
  deletion(cache);
  expect([cache.size, foreign]).toEqual([0, []]);
  write(cache, slice(7));
  cache.arrived("a");
  expect([cache.size, foreign]).toEqual([0, [driver]]);
});

test("an event of a known write is not parsed; any other is", () => {
  const { cache } = setUp();
  write(cache, slice(7));
  expect(cache.knownVersion(eventOf("MODIFIED", slice(7)))).toBe("7");
  expect(cache.knownVersion(eventOf("ADDED", slice(6)))).toBe("6");
  expect(cache.knownVersion(eventOf("MODIFIED", slice(8)))).toBeUndefined();
  expect(cache.knownVersion(eventOf("DELETED", slice(7)))).toBeUndefined();
  expect(cache.knownVersion(eventOf("MODIFIED", slice(7, "a", "another")))).toBeUndefined();
  expect(cache.knownVersion(eventOf("MODIFIED", slice(7, "b")))).toBeUndefined();
  expect(cache.knownVersion('{"type":"MODIFIED","object":{')).toBeUndefined();
});
