import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { PluginContent } from "./content.ts";
import type { Json } from "./json.ts";
import { customNodeResource, kindKey } from "./kinds.ts";
import { mergeObject } from "./merge.ts";
import { PREDECESSOR } from "./rank.ts";
import { contentOf, field, message } from "./testing/contents.ts";

const cnr = kindKey(customNodeResource);

function merge(contents: Record<string, PluginContent>) {
  return mergeObject(cnr, new Map(Object.entries(contents)));
}

const status = (name: string, value: unknown) => contentOf(message([field("status", name, value)]));
const spec = (name: string, value: unknown) => contentOf(message([field("spec", name, value)]));

describe("mergeObject", () => {
  it("is undefined if no plugin reports anything", () =>
    expect(merge({ a: contentOf({ content: [] }) })).toBeUndefined());

  it("merges maps by key and objects deeply", () => {
    const merged = merge({
      a: status("resources", { allocatable: { "x.io/a": "1" }, capacity: { "x.io/a": "2" } }),
      b: status("resources", { allocatable: { "x.io/b": "3" } }),
    });
    expect(merged?.parts.status).toEqual({
      resources: { allocatable: { "x.io/a": "1", "x.io/b": "3" }, capacity: { "x.io/a": "2" } },
    });
    expect(merged?.conflicts).toEqual([]);
    expect(merged?.plugins).toEqual(["a", "b"]);
  });

  it("uses the scalar of the plugin whose name sorts last, and records the other plugins", () => {
    const merged = merge({
      b: status("topologyPolicy", "B"),
      c: status("topologyPolicy", "C"),
      a: status("topologyPolicy", "A"),
    });
    expect(merged?.parts.status).toEqual({ topologyPolicy: "C" });
    expect(merged?.conflicts).toEqual([
      { path: "status.topologyPolicy", winner: "b", others: ["a"] },
      { path: "status.topologyPolicy", winner: "c", others: ["a", "b"] },
    ]);
  });

  it("uses the value of a live plugin, of a lost one, and of an earlier agent, in this order, whatever their names", () => {
    const contents = new Map([
      ["a", status("topologyPolicy", "live")],
      ["z", status("topologyPolicy", "lost")],
      [PREDECESSOR, status("topologyPolicy", "earlier")],
    ]);
    const value = (lost: string[]) => mergeObject(cnr, contents, new Set(lost))?.parts.status.topologyPolicy;
    expect(value(["z"])).toBe("live");
    expect(value(["a", "z"])).toBe("lost");
    contents.delete("a");
    expect(value(["z"])).toBe("lost");
    expect(mergeObject(cnr, contents, new Set(["z"]))?.conflicts).toEqual([
      { path: "status.topologyPolicy", winner: "z", others: [PREDECESSOR] },
    ]);
  });

  it("records no conflict if plugins agree", () => {
    expect(merge({ a: status("x", { y: [1] }), b: status("x", { y: [1] }) })?.conflicts).toEqual([]);
  });

  it("uses the later value if types differ", () => {
    const merged = merge({ a: status("x", { y: 1 }), b: status("x", [2]) });
    expect(merged?.parts.status).toEqual({ x: [2] });
    expect(merged?.conflicts).toHaveLength(1);
  });

  it("appends lists", () => {
    expect(merge({ b: status("x", [2]), a: status("x", [1]) })?.parts.status).toEqual({ x: [1, 2] });
  });

  it("merges topology zones by type and name, down to their children", () => {
    const zone = (name: string, rest: object) => ({ type: "Numa", name, ...rest });
    const socket = (...children: object[]) => [{ type: "Socket", name: "0", children }];
    const merged = merge({
      a: status("TopologyZone", socket(zone("0", { attributes: [{ name: "k", value: "1" }] }))),
      b: status("TopologyZone", socket(zone("0", { resources: { capacity: { cpu: "4" } } }), zone("1", {}))),
    });
    expect(merged?.parts.status).toEqual({
      topologyZone: socket(
        zone("0", { attributes: [{ name: "k", value: "1" }], resources: { capacity: { cpu: "4" } } }),
        zone("1", {}),
      ),
    });
  });

  it("merges taints by key, effect and QoS level", () => {
    const taint = (value: string) => ({ key: "k", effect: "NoSchedule", qosLevel: "reclaimed_cores", value });
    const other = { key: "k", effect: "NoExecute", qosLevel: "reclaimed_cores" };
    const merged = merge({ a: spec("taints", [taint("1")]), b: spec("taints", [taint("2"), other]) });
    expect(merged?.parts.spec).toEqual({ taints: [taint("2"), other] });
    expect(merged?.conflicts).toHaveLength(1);
  });

  it("ignores members of Object.prototype", () => {
    const merged = merge({ a: status("x", { a: 1 }), b: status("x", { constructor: 2, toString: 3 }) });
    expect(merged?.parts.status).toEqual({ x: { a: 1, constructor: 2, toString: 3 } });
  });
});

const names = ["a", "b", "c", "d"];
const scalar = fc.oneof(fc.integer({ min: 0, max: 2 }), fc.constantFrom("x", "y"), fc.boolean());
const zone = fc.record({
  type: fc.constantFrom("Numa", "Socket"),
  name: fc.constantFrom("0", "1"),
  attributes: fc.array(fc.record({ name: fc.constantFrom("k", "l"), value: scalar }), { maxLength: 2 }),
});
const { json } = fc.letrec<{ json: unknown }>((tie) => ({
  json: fc.oneof(
    { maxDepth: 3, depthSize: "small" },
    scalar,
    fc.array(tie("json"), { maxLength: 3 }),
    fc.dictionary(fc.constantFrom("a", "b", "constructor", "conditions"), tie("json"), { maxKeys: 3 }),
  ),
}));
const plugin = fc
  .record({ x: json, y: json, zones: fc.array(zone, { maxLength: 3 }) })
  .map(({ x, y, zones }) =>
    contentOf(
      message([field("status", "x", x), field("spec", "y", y), field("status", "topologyZone", zones)]),
    ),
  );
const plugins = fc.array(plugin, { minLength: names.length, maxLength: names.length });

describe("merging arbitrary reports", () => {
  it("does not depend on the order of arrival", () => {
    const order = fc.shuffledSubarray(names, { minLength: names.length });
    fc.assert(
      fc.property(plugins, order, (contents, arrival) => {
        const entries = names.map((name, at) => [name, contents[at]!] as const);
        const shuffled = arrival.map((name) => entries.find(([each]) => each === name)!);
        const asText = (list: typeof entries) => JSON.stringify(mergeObject(cnr, new Map(list)));
        expect(asText(shuffled)).toBe(asText(entries));
      }),
    );
  });

  it("does not modify its inputs", () => {
    fc.assert(
      fc.property(plugins, (contents) => {
        const before = JSON.stringify(contents);
        mergeObject(cnr, new Map(contents.map((content, at) => [names[at]!, content])));
        expect(JSON.stringify(contents)).toBe(before);
      }),
    );
  });

  it("keeps every reported map key", () => {
    fc.assert(
      fc.property(
        fc.array(fc.dictionary(fc.constantFrom("a", "b", "c"), scalar), { maxLength: 4 }),
        (maps) => {
          const contents = Object.fromEntries(maps.map((map, at) => [`p${at}`, status("x", map)]));
          const merged = (merge(contents)?.parts.status.x ?? {}) as Record<string, Json>;
          expect(new Set(Object.keys(merged))).toEqual(new Set(maps.flatMap((map) => Object.keys(map))));
          for (const [key, value] of Object.entries(merged)) {
            expect(value).toBe(maps.findLast((map) => key in map)?.[key]);
          }
        },
      ),
    );
  });

  it("returns one plugin's report if the others report nothing", () => {
    fc.assert(
      fc.property(plugin, (content) => {
        const alone = mergeObject(cnr, new Map([["a", content]]));
        const beside = mergeObject(
          cnr,
          new Map([
            ["a", content],
            ["b", contentOf({ content: [] })],
          ]),
        );
        expect(beside).toEqual(alone);
      }),
    );
  });
});
