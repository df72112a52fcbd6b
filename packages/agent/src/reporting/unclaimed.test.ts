import type { KubeObject } from "@nodekeeper/core/kube";
import { describe, expect, it } from "vitest";
import { noContent, type PluginContent } from "./content.ts";
import type { Json } from "./json.ts";
import { customNodeResource, kindKey, kindPolicies, OWN_TAINTS } from "./kinds.ts";
import { mergeObject } from "./merge.ts";
import { contentOf, field, message } from "./testing/contents.ts";
import { pathsOf, publishedBefore, publishedOf, unclaimed } from "./unclaimed.ts";

const object = kindKey(customNodeResource);
const policy = kindPolicies([]).get(object)!;
const owner = { manager: "nodekeeper", isFrozen: () => false };

/** Returns a live object in which the manager owns these fields. */
function liveWith(body: object, main: object, status: object = {}, manager = "nodekeeper"): KubeObject {
  const { metadata, ...rest } = body as { metadata?: object };
  const entry = { manager, operation: "Apply" };
  const managedFields = [
    { ...entry, fieldsV1: main },
    { ...entry, subresource: "status", fieldsV1: status },
  ] as KubeObject["metadata"]["managedFields"];
  return { ...rest, metadata: { name: "n1", ...metadata, managedFields } } as KubeObject;
}

const publishedIn = (live: KubeObject) =>
  Object.fromEntries(
    publishedBefore(live, policy, owner).fields.map(({ part, name, value }) => [`${part}.${name}`, value]),
  );

describe("fields published by an earlier agent", () => {
  const leaf = {};
  it.each<[string, object, object, object]>([
    [
      "members of maps that it owns",
      { status: { resources: { capacity: { a: "1", theirs: "2" } }, topologyPolicy: "None" } },
      { "f:status": { "f:resources": { "f:capacity": { ".": leaf, "f:a": leaf } } } },
      { "status.resources": { capacity: { a: "1" } } },
    ],
    [
      "a list that has one owner, whole",
      { status: { topologyZone: [{ type: "Numa", name: "0" }] } },
      { "f:status": { "f:topologyZone": leaf } },
      { "status.topologyZone": [{ type: "Numa", name: "0" }] },
    ],
    [
      "the items of a keyed list that it owns",
      { status: { conditions: [{ type: "A", status: "True", x: 1 }, { type: "B" }] } },
      {
        "f:status": { "f:conditions": { 'k:{"type":"A"}': { ".": leaf, "f:type": leaf, "f:status": leaf } } },
      },
      { "status.conditions": [{ type: "A", status: "True" }] },
    ],
    [
      "the items of a set that it owns",
      { status: { names: ["a", "b"] } },
      { "f:status": { "f:names": { 'v:"b"': leaf } } },
      { "status.names": ["b"] },
    ],
    [
      "no member of a map that it applied without members",
      { metadata: { labels: { theirs: "1" } }, status: { resources: { capacity: { theirs: "2" } } } },
      { "f:metadata": { "f:labels": leaf }, "f:status": { "f:resources": { "f:capacity": leaf } } },
      { "status.resources": {} },
    ],
    ["no field that was deleted", { status: {} }, { "f:status": { "f:removed": leaf } }, {}],
  ])("is %s", (_, body, fields, expected) => {
    expect(publishedIn(liveWith(body, {}, fields))).toEqual(expected);
    expect(publishedIn(liveWith(body, {}, fields, "another-client"))).toEqual({});
  });

  const taint = (key: string) => ({ key, effect: "NoSchedule" });
  const annotated = (value: string) => ({
    metadata: { annotations: { [OWN_TAINTS]: value, mine: "1" } },
    spec: { taints: [taint("theirs"), taint("ours"), taint("nodekeeper.dev/hot")] },
  });
  const owned = {
    "f:spec": { "f:taints": leaf },
    "f:metadata": { "f:annotations": { [`f:${OWN_TAINTS}`]: leaf, "f:mine": leaf } },
  };
  it.each<[string, string, object, string[]]>([
    ["those of its annotation", '["ours:NoSchedule:"]', owned, ["ours"]],
    [
      "none if another client wrote the annotation, whatever their prefix",
      '["theirs:NoSchedule:"]',
      { "f:spec": { "f:taints": leaf } },
      [],
    ],
    ["none if the annotation is not JSON", "{", owned, []],
    ["none if the annotation is not a list", "7", owned, []],
  ])("is, of taints, %s", (_, annotation, fields, keys) => {
    const taints = publishedIn(liveWith(annotated(annotation), fields))["spec.taints"] ?? [];
    expect((taints as { key: string }[]).map(({ key }) => key)).toEqual(keys);
  });
});

describe("unclaimed fields", () => {
  it.each<[string, Json, Json, Json | undefined]>([
    ["all, if nothing is reported", { a: "1" }, null, { a: "1" }],
    ["nothing, regardless of the values", { a: "1" }, { a: "2" }, undefined],
    [
      "other members of maps",
      { capacity: { a: "1", b: "1" } },
      { capacity: { a: "1" } },
      { capacity: { b: "1" } },
    ],
  ])("is %s", (_, published, reported, left) => {
    const content = contentOf(message([field("status", "resources", published)]));
    const merged = mergeObject(
      object,
      new Map([["p", contentOf(message([field("status", "resources", reported)]))]]),
    );
    expect(unclaimed(content, merged).fields[0]?.value).toEqual(left);
  });

  it("include items of keyed lists, and unreported fields of an item with its keys", () => {
    const zone = (name: string, ...consumers: string[]) => ({
      type: "Numa",
      name,
      allocations: consumers.map((consumer) => ({ consumer, requests: { cpu: "1" } })),
    });
    const content = contentOf(
      message([field("status", "topologyZone", [zone("0", "a", "b"), zone("1", "c")])]),
    );
    const reported = contentOf(message([field("status", "topologyZone", [zone("0", "a")])]));
    const left = unclaimed(content, mergeObject(object, new Map([["p", reported]])));
    expect(left.fields[0]?.value).toEqual([zone("0", "b"), zone("1", "c")]);
    expect(pathsOf(left)).toEqual(["status.topologyZone[Numa/0]", "status.topologyZone[Numa/1]"]);
  });

  it("are the same object while no plugin reports any", () => {
    const content = contentOf(message([field("status", "resources", { a: "1" })]));
    expect(unclaimed(content, undefined)).toBe(content);
    expect(
      unclaimed(
        content,
        mergeObject(object, new Map([["p", contentOf(message([field("status", "x", 1)]))]])),
      ),
    ).toBe(content);
    expect(unclaimed(noContent, undefined)).toBe(noContent);
  });
});

describe("what was published of a report", () => {
  const of = (value: object) => contentOf(message([field("status", "x", value)]));
  const zones = (value: object[]) => contentOf(message([field("status", "topologyZone", value)]));
  const zone = (name: string, rest: object = {}) => ({ type: "Numa", name, ...rest });
  const cases: [string, PluginContent, PluginContent, unknown][] = [
    ["scalars have the published value", of({ a: 1, b: 2 }), of({ a: 3 }), { a: 1 }],
    ["members below members too", of({ a: { b: 1, c: 2 } }), of({ a: { c: 3, d: 4 } }), { a: { c: 2 } }],
    ["a published object is not taken for a scalar", of({ a: { b: 1 } }), of({ a: 2 }), undefined],
    [
      "items by their keys",
      zones([zone("0", { a: 1 }), zone("1", { a: 1 })]),
      zones([zone("1", { a: 2, b: 3 }), zone("2")]),
      [zone("1", { a: 1 })],
    ],
    ["equal lists", of({ a: [1, 2] }), of({ a: [1, 2] }), { a: [1, 2] }],
    ["no lists that differ: others may have added to them", of({ a: [1, 2] }), of({ a: [1] }), undefined],
  ];
  it.each(cases)("%s", (_, published, content, expected) => {
    expect(publishedOf(published, content).fields[0]?.value).toEqual(expected);
  });

  it("is nothing of a field that was not published", () => {
    expect(publishedOf(zones([zone("0")]), of({ a: 1 })).fields).toEqual([]);
  });
});
