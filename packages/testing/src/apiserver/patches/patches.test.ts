import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { listBy, map, set } from "../fields/schema.ts";
import { jsonPatch } from "./json-patch.ts";
import { mergePatch } from "./merge-patch.ts";
import { strategicPatch } from "./strategic-patch.ts";

describe("JSON merge patch", () => {
  // After the table in the appendix of RFC 7396.
  test.each([
    [{ a: "b" }, { a: "c" }, { a: "c" }],
    [{ a: "b" }, { b: "c" }, { a: "b", b: "c" }],
    [{ a: "b" }, { a: null }, {}],
    [{ a: ["b"] }, { a: "c" }, { a: "c" }],
    [{ a: { b: "c" } }, { a: { b: "d", c: null } }, { a: { b: "d" } }],
    [{ a: [{ b: "c" }] }, { a: [1] }, { a: [1] }],
    [{ a: "foo" }, "bar", "bar"],
    [{ e: null }, { a: 1 }, { e: null, a: 1 }],
    [[1, 2], { a: "b", c: null }, { a: "b" }],
    [{}, { a: { bb: { ccc: null } } }, { a: { bb: {} } }],
  ])("%j with %j is %j", (value, patch, expected) => {
    expect(mergePatch(value, patch)).toEqual(expected);
  });

  test("never touches its input, and setting the same again changes nothing", () => {
    fc.assert(
      fc.property(fc.json(), fc.json(), (value, patch) => {
        const [document, change] = [JSON.parse(value), JSON.parse(patch)];
        const once = mergePatch(document, change);
        expect(JSON.stringify(document)).toBe(JSON.stringify(JSON.parse(value)));
        expect(mergePatch(once, change)).toEqual(once);
      }),
    );
  });
});

describe("JSON patch", () => {
  test.each([
    [{ foo: "bar" }, [{ op: "add", path: "/baz", value: "q" }], { foo: "bar", baz: "q" }],
    [{ foo: [1, 3] }, [{ op: "add", path: "/foo/1", value: 2 }], { foo: [1, 2, 3] }],
    [{ foo: [1] }, [{ op: "add", path: "/foo/-", value: 2 }], { foo: [1, 2] }],
    [{ foo: [1, 2] }, [{ op: "remove", path: "/foo/0" }], { foo: [2] }],
    [{ foo: [1, 2] }, [{ op: "replace", path: "/foo/0", value: 9 }], { foo: [9, 2] }],
    [{ a: { b: 1 }, c: {} }, [{ op: "move", from: "/a/b", path: "/c/d" }], { a: {}, c: { d: 1 } }],
    [{ a: { b: 1 } }, [{ op: "copy", from: "/a", path: "/c" }], { a: { b: 1 }, c: { b: 1 } }],
    [
      { "a/b": 1, "c~d": 2 },
      [
        { op: "remove", path: "/a~1b" },
        { op: "test", path: "/c~0d", value: 2 },
      ],
      { "c~d": 2 },
    ],
    [{ a: 1 }, [{ op: "replace", path: "", value: [] }], []],
  ])("%j with %j is %j", (value, patch, expected) => {
    expect(jsonPatch(value, patch)).toEqual(expected);
  });

  test.each([
    [[{ op: "remove", path: "/none" }], 422],
    [[{ op: "replace", path: "/none", value: 1 }], 422],
    [[{ op: "add", path: "/none/below", value: 1 }], 422],
    [[{ op: "add", path: "/list/3", value: 1 }], 422],
    [[{ op: "remove", path: "/list/01" }], 422],
    [[{ op: "test", path: "/list", value: [1] }], 422],
    [[{ op: "remove", path: "/__proto__" }], 422],
    [[{ op: "remove", path: "list" }], 400],
    [[{ op: "frob", path: "/list" }], 400],
    [[{ path: "/list" }], 400],
    [{ op: "add" }, 400],
  ])("%j is refused with %d", (patch, code) => {
    const attempt = () => jsonPatch({ list: [1, 2] }, patch);
    expect(attempt).toThrow(expect.objectContaining({ status: expect.objectContaining({ code }) }));
  });
});

describe("strategic merge patch", () => {
  const schema = map({ items: listBy("name", map({ tags: set })), words: set });

  test.each([
    [
      "keyed items merge",
      { items: [{ name: "a", x: 1 }] },
      { items: [{ name: "a", y: 2 }, { name: "b" }] },
      { items: [{ name: "a", x: 1, y: 2 }, { name: "b" }] },
    ],
    ["other lists are replaced", { plain: [1, 2] }, { plain: [3] }, { plain: [3] }],
    ["sets are united", { words: ["a"] }, { words: ["a", "b"] }, { words: ["a", "b"] }],
    [
      "an item is deleted by key",
      { items: [{ name: "a" }, { name: "b" }] },
      { items: [{ $patch: "delete", name: "a" }] },
      { items: [{ name: "b" }] },
    ],
    [
      "a list is replaced on request",
      { items: [{ name: "a" }] },
      { items: [{ $patch: "replace" }, { name: "c" }] },
      { items: [{ name: "c" }] },
    ],
    ["a map is replaced on request", { m: { a: 1 } }, { m: { $patch: "replace", b: 1 } }, { m: { b: 1 } }],
    [
      "only retained keys stay",
      { m: { a: 1, b: 1 } },
      { m: { $retainKeys: ["b", "c"], c: 1 } },
      { m: { b: 1, c: 1 } },
    ],
    [
      "values are deleted from a set",
      { words: ["a", "b"] },
      { "$deleteFromPrimitiveList/words": ["a"] },
      { words: ["b"] },
    ],
    [
      "items are ordered",
      { items: [{ name: "a" }, { name: "b" }] },
      { "$setElementOrder/items": [{ name: "b" }, { name: "a" }] },
      { items: [{ name: "b" }, { name: "a" }] },
    ],
    ["null removes", { a: 1, b: { c: 1 } }, { a: null, b: { c: null } }, { b: {} }],
  ])("%s", (_what, value, patch, expected) => {
    expect(strategicPatch(value, patch, schema)).toEqual(expected);
  });

  test("an item without its key is refused by name", () => {
    expect(() => strategicPatch({}, { items: [{ x: 1 }] }, schema)).toThrow("declared merge key: name");
  });
});
