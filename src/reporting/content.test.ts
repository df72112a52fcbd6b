import { describe, expect, it } from "vitest";
import { jsonName } from "./content.ts";
import { node } from "./kinds.ts";
import { contentOf, field, message, RawText } from "./testing.ts";

const values = (content: ReturnType<typeof contentOf>) =>
  Object.fromEntries(content.fields.map(({ part, name, value }) => [`${part}.${name}`, value]));

describe("jsonName", () => {
  it.each([
    ["TopologyZone", "topologyZone"],
    ["topologyZone", "topologyZone"],
    ["NodeResourceProperties", "nodeResourceProperties"],
    ["UID", "uid"],
    ["CPUInfo", "cpuInfo"],
    ["PodCIDR", "podCIDR"],
    ["X", "x"],
  ])("maps %s to %s", (go, json) => expect(jsonName(go)).toBe(json));

  it.each(["", "__proto__", "a.b", "a/b", "9a", "constructor", "Constructor", "toString", "x".repeat(254)])(
    "refuses %j",
    (name) => expect(jsonName(name)).toBeUndefined(),
  );
});

describe("parseContent", () => {
  it("takes good fields of every part, normalized", () => {
    const content = contentOf(
      message([
        field("spec", "NodeResourceProperties", [{ propertyName: "cpu", propertyQuantity: null }]),
        field("status", "topologyPolicy", "None"),
        field("metadata", "Labels", { b: "2", a: "1" }),
      ]),
    );
    expect(content.problems).toEqual([]);
    expect(JSON.stringify(values(content))).toBe(
      JSON.stringify({
        "spec.nodeResourceProperties": [{ propertyName: "cpu" }],
        "status.topologyPolicy": "None",
        "metadata.labels": { a: "1", b: "2" },
      }),
    );
  });

  it.each<[string, ReturnType<typeof message>, string, RegExp]>([
    ["no JSON", message([field("spec", "Taints", new RawText("{nope"))]), "json", /spec\."Taints".*not JSON/],
    ["no UTF-8", bytes([0xff, 0xfe]), "json", /not JSON/],
    [
      "a wrong type",
      message([field("status", "TopologyZone", { a: 1 })]),
      "type",
      /must be array, is object/,
    ],
    [
      "a wrong item",
      message([field("spec", "Taints", [{}, "x"])]),
      "type",
      /item 1 must be object, is string/,
    ],
    ["an unknown part", message([field(7, "Taints", [])]), "part", /unknown field type 7/],
    ["no kind", { content: [{ groupVersionKind: undefined, field: [] }] }, "kind", /content 0 names no kind/],
    [
      "an unknown kind",
      message([], { group: "x.io", version: "v1", kind: "Foo" }),
      "kind",
      /x\.io\/v1\/Foo.*additionalKinds/,
    ],
    ["a name of ours", message([field("spec", "__proto__", 1)]), "name", /"__proto__".*letters and digits/],
    [
      "a key of ours",
      message([field("status", "x", new RawText('{"a":{"__proto__":1}}'))]),
      "json",
      /__proto__.* at a/,
    ],
    ["a deep nesting", message([field("status", "x", deep(70))]), "json", /nested deeper than 64/],
    ["a finalizer", message([field("metadata", "finalizers", ["x"])]), "refused", /only labels, annotations/],
    ["spec of a Node", message([field("spec", "taints", [])], node), "refused", /may not report the spec/],
    [
      "cpu of a Node",
      message([field("status", "Capacity", { cpu: "4" })], node),
      "refused",
      /"cpu" is not an extended resource/,
    ],
    [
      "no quantity",
      message([field("status", "capacity", { "a.io/b": "4x" })], node),
      "refused",
      /no quantity/,
    ],
    [
      "Kubernetes' label",
      message([field("metadata", "labels", { "kubernetes.io/hostname": "x" })], node),
      "refused",
      /belongs to Kubernetes/,
    ],
    [
      "a label value",
      message([field("metadata", "labels", { a: "no spaces" })], node),
      "refused",
      /no label value/,
    ],
    ["a label key", message([field("metadata", "labels", { "a b": "" })], node), "refused", /qualified name/],
  ])("names %s and takes the rest", (_, bad, reason, text) => {
    const good = message([field("status", "topologyPolicy", "None")]);
    const content = contentOf({ content: [...bad.content, ...good.content] });
    expect(content.problems.map((problem) => problem.reason)).toContain(reason);
    expect(content.problems.map((problem) => problem.message).join("\n")).toMatch(text);
    expect(values(content)["status.topologyPolicy"]).toBe("None");
  });

  it("leaves out a bad label and keeps the good ones", () => {
    const content = contentOf(message([field("metadata", "labels", { good: "1", "bad key": "2" })], node));
    expect(values(content)).toEqual({ "metadata.labels": { good: "1" } });
  });

  it("keeps the last good value of a field that turns bad, and gives up one that is not sent", () => {
    const before = contentOf(message([field("status", "a", 1), field("status", "b", 2)]));
    const after = contentOf(message([field("status", "a", new RawText("nope"))]), before);
    expect(values(after)).toEqual({ "status.a": 1 });
    expect(after.problems).toHaveLength(1);
  });

  it("takes null and an empty value as nothing to say", () => {
    const content = contentOf(
      message([field("spec", "Taints", null), field("status", "x", new RawText(""))]),
    );
    expect(content).toEqual({ fields: [], problems: [] });
  });

  it("bounds fields and problems", () => {
    const fields = Array.from({ length: 3_000 }, (_, at) => field("status", `f${at}`, at));
    const content = contentOf(message(fields));
    expect(content.fields).toHaveLength(1_000);
    const bad = contentOf(message(fields.map((each) => ({ ...each, fieldType: 9 as 0 }))));
    expect(bad.problems).toHaveLength(50);
  });
});

function bytes(value: number[]) {
  const one = field("spec", "Taints", []);
  return message([{ ...one, value: new Uint8Array(value) }]);
}

function deep(levels: number): unknown {
  return levels === 0 ? 1 : { a: deep(levels - 1) };
}

it("refuses values of countless empty parts before they are parsed: they would take a hundred times their size", () => {
  const many = (count: number) => new RawText(`[${"{},".repeat(count - 1)}{}]`);
  const { fields, problems } = contentOf(
    message([field("status", "good", many(150_000)), field("status", "bad", many(60_000))]),
  );
  expect(fields.map(({ name }) => name)).toEqual(["good"]);
  expect(problems).toEqual([
    { reason: "limit", message: expect.stringContaining("more than 200000 objects and lists") },
  ]);
});
