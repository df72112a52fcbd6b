import { GetReportContentResponse } from "@nodekeeper/core/gen/reporterplugin/v1alpha1/api.ts";
import { describe, expect, it } from "vitest";
import { desiredOf } from "./bodies.ts";
import { encodeContent, jsonName, parseContent } from "./content.ts";
import { customNodeResource, kindKey, kindPolicies, node } from "./kinds.ts";
import { mergeObject } from "./merge.ts";
import { contentOf, field, message, RawText } from "./testing/contents.ts";

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
  it("returns valid fields of every part, normalized", () => {
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
    [
      "no kind",
      { content: [{ groupVersionKind: undefined, field: [] }] },
      "kind",
      /content 0 has no groupVersionKind/,
    ],
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
    [
      "spec of a Node",
      message([field("spec", "taints", [])], node),
      "refused",
      /not allowed to report the spec/,
    ],
    [
      "cpu of a Node",
      message([field("status", "Capacity", { cpu: "4" })], node),
      "refused",
      /"cpu" is not an extended resource/,
    ],
    [
      "an invalid quantity",
      message([field("status", "capacity", { "a.io/b": "4x" })], node),
      "refused",
      /not a quantity/,
    ],
    [
      "a number that would become null",
      message([field("status", "x", new RawText('{"a":[1e999]}'))]),
      "json",
      /number 1e999 is too large/,
    ],
    [
      "annotations beyond what the API server takes",
      message([field("metadata", "annotations", { a: "x".repeat(200_000), b: "x".repeat(70_000) })], node),
      "limit",
      /annotations have 270002 bytes, the limit is 262144/,
    ],
    [
      "Kubernetes' label",
      message([field("metadata", "labels", { "kubernetes.io/hostname": "x" })], node),
      "refused",
      /reserved for Kubernetes/,
    ],
    [
      "a label value",
      message([field("metadata", "labels", { a: "no spaces" })], node),
      "refused",
      /not a valid label value/,
    ],
    ["a label key", message([field("metadata", "labels", { "a b": "" })], node), "refused", /qualified name/],
  ])("names %s and takes the rest", (_, bad, reason, text) => {
    const good = message([field("status", "topologyPolicy", "None")]);
    const content = contentOf({ content: [...bad.content, ...good.content] });
    expect(content.problems.map((problem) => problem.reason)).toContain(reason);
    expect(content.problems.map((problem) => problem.message).join("\n")).toMatch(text);
    expect(values(content)["status.topologyPolicy"]).toBe("None");
  });

  // Extended resources are integers: kubernetes ValidateResourceQuantityValue.
  it.each([
    ["-1", /is negative: "-1"/],
    ["1.5", /must be a whole number, is "1.5"/],
    ["1m", /must be a whole number, is "1m"/],
    ["1001m", /must be a whole number/],
    [-2, /is negative: "-2"/],
    [0.5, /must be a whole number/],
    ["9Pi", /is refused by the API server, whose check of it overflows \(above 9223372036854775\): "9Pi"/],
    ["9.5Pi", /overflows/],
    ["1000Pi", /overflows/],
    ["1Ei", /overflows/],
    ["7Ei", /overflows/],
    ["9300Ti", /overflows/],
    ["9223372036854776", /overflows/],
    ["10000000000000000", /overflows/],
    ["8763352888671775k", /overflows/],
    ["490290721061E6", /overflows/],
    ["12345678901234567890", /overflows/],
    ["4x", /is not a quantity/],
    [true, /is not a quantity: "true"/],
  ])("leaves a Node's quantity %j out, and keeps those beside it", (quantity, problem) => {
    const capacity = { "a.io/bad": quantity, "a.io/text": "2k", "a.io/number": 3, "a.io/milli": "4000m" };
    const content = contentOf(message([field("status", "capacity", capacity)], node));
    expect(values(content)["status.capacity"]).toEqual({
      "a.io/text": "2k",
      "a.io/number": 3,
      "a.io/milli": "4000m",
    });
    expect(content.problems.map(({ message }) => message).join()).toMatch(problem);
  });

  // As in kube-apiserver 1.36.
  it.each(["9223372036854775", "8Pi", "9P", "2Ei", "8Ei", "9223372036854775807"])(
    "keeps %s, a large quantity of a Node that the API server accepts",
    (quantity) => {
      const capacity = { "a.io/large": quantity };
      const content = contentOf(message([field("status", "capacity", capacity)], node));
      expect(values(content)["status.capacity"]).toEqual(capacity);
      expect(content.problems).toEqual([]);
    },
  );

  it.each([
    '{"int64":9223372036854775807,"small":1,"text":"12345678901234567890"}',
    '{"list":[-9007199254740993,[12345678901234567890]]}',
    '{"even":9007199254740992,"exponent":1.5e+300,"float":0.1}',
    "18446744073709551615",
  ])("keeps the numbers of %s exactly, to the body that is applied, and in the checkpoint", (text) => {
    const content = contentOf(message([field("status", "numbers", new RawText(text))]));
    expect(content.problems).toEqual([]);
    const merged = mergeObject(kindKey(customNodeResource), new Map([["a", content]]));
    expect(desiredOf(merged, "status").text).toBe(`{"status":{"numbers":${text}}}`);
    const again = parseContent(GetReportContentResponse.decode(encodeContent(content)), kindPolicies([]));
    expect(JSON.stringify(again)).toBe(JSON.stringify(content));
  });

  it("merges two values of one field as reports of two plugins are merged", () => {
    const zone = (name: string, capacity: object) => ({ type: "Numa", name, resources: { capacity } });
    const content = contentOf(
      message([
        field("status", "TopologyZone", [zone("0", { cpu: "1" }), zone("1", { cpu: "2" })]),
        field("status", "topologyZone", [zone("1", { "a.io/b": "3" }), zone("2", {})]),
        field("status", "resources", { capacity: { a: "1" } }),
        field("status", "resources", { capacity: { b: "2" } }),
      ]),
    );
    expect(values(content)).toEqual({
      "status.topologyZone": [zone("0", { cpu: "1" }), zone("1", { cpu: "2", "a.io/b": "3" }), zone("2", {})],
      "status.resources": { capacity: { a: "1", b: "2" } },
    });
    expect(content.problems).toEqual([]);
  });

  it("merges duplicate zones of one list and their children", () => {
    const content = contentOf(
      message([
        field("status", "topologyZone", [
          {
            type: "Socket",
            name: "0",
            children: [{ type: "Numa", name: "0", allocations: [{ consumer: "a" }] }],
          },
          {
            type: "Socket",
            name: "0",
            children: [{ type: "Numa", name: "0", allocations: [{ consumer: "b" }] }],
          },
          {
            type: "Socket",
            name: "1",
            children: [
              { type: "Numa", name: "1" },
              { type: "Numa", name: "1" },
            ],
          },
        ]),
      ]),
    );
    const numa = (name: string, more: object = {}) => ({ name, type: "Numa", ...more });
    expect(values(content)["status.topologyZone"]).toEqual([
      {
        type: "Socket",
        name: "0",
        children: [numa("0", { allocations: [{ consumer: "a" }, { consumer: "b" }] })],
      },
      { type: "Socket", name: "1", children: [numa("1")] },
    ]);
  });

  it("reports paths with two different values; the last one is used", () => {
    const content = contentOf(
      message([field("status", "topologyPolicy", "None"), field("status", "topologyPolicy", "Other")]),
    );
    expect(values(content)["status.topologyPolicy"]).toBe("Other");
    expect(content.problems).toMatchObject([
      { message: expect.stringContaining("different values at status.topologyPolicy") },
    ]);
  });

  it("accepts Node quantities as numbers and strings", () => {
    const capacity = new RawText('{"a.io/large":9223372036854775807}');
    const content = contentOf(message([field("status", "capacity", capacity)], node));
    expect(content.problems).toEqual([]);
    expect(JSON.stringify(values(content)["status.capacity"])).toBe('{"a.io/large":9223372036854775807}');
  });

  it("drops an invalid label and keeps the valid ones", () => {
    const content = contentOf(message([field("metadata", "labels", { good: "1", "bad key": "2" })], node));
    expect(values(content)).toEqual({ "metadata.labels": { good: "1" } });
  });

  it("keeps the last good value of a field that becomes invalid, and drops one that is not sent", () => {
    const before = contentOf(message([field("status", "a", 1), field("status", "b", 2)]));
    const after = contentOf(message([field("status", "a", new RawText("nope"))]), before);
    expect(values(after)).toEqual({ "status.a": 1 });
    expect(after.problems).toHaveLength(1);
  });

  it("treats null and an empty value as absent", () => {
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

it("rejects values with too many empty objects before parsing, which would take a hundred times their size", () => {
  const many = (count: number) => new RawText(`[${"{},".repeat(count - 1)}{}]`);
  const { fields, problems } = contentOf(
    message([field("status", "good", many(150_000)), field("status", "bad", many(60_000))]),
  );
  expect(fields.map(({ name }) => name)).toEqual(["good"]);
  expect(problems).toEqual([
    { reason: "limit", message: expect.stringContaining("more than 200000 JSON objects and lists") },
  ]);
});
