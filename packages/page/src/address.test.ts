import fc from "fast-check";
import { expect, test } from "vitest";
import { addressOf, readAddress } from "./address.ts";

test("an address is read as it was made, whatever names are in it", () => {
  const text = fc.string({ unit: "grapheme" });
  const path = fc.array(text.filter((part) => part !== ""));
  fc.assert(
    fc.property(path, fc.dictionary(text, text), (parts, query) => {
      const read = readAddress(addressOf("pod", parts, query));
      expect({ ...read, query: Object.fromEntries(read.query) }).toEqual({
        view: "pod",
        path: parts,
        query: { ...query },
      });
    }),
  );
});

test.each([
  ["", { view: "", path: [] }],
  ["#", { view: "", path: [] }],
  ["#/now", { view: "now", path: [] }],
  ["#/pod//web/", { view: "pod", path: ["web"] }],
  ["#/pod/%", { view: "pod", path: ["%"] }],
])("%j", (fragment, expected) => {
  expect(readAddress(fragment)).toMatchObject(expected);
});

test("a member of the query without a value is left out", () => {
  expect(addressOf("timeline", [], { from: 5, to: undefined })).toBe("#/timeline?from=5");
});
