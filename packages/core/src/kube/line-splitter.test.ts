import fc from "fast-check";
import { expect, test } from "vitest";
import { LineSplitter } from "./line-splitter.ts";

test("lines come out whole, however the bytes are cut", () => {
  const lines = fc.array(fc.string({ unit: "grapheme", minLength: 1 }).map((line) => JSON.stringify(line)));
  const cuts = fc.infiniteStream(fc.integer({ min: 1, max: 20 }));
  fc.assert(
    fc.property(lines, cuts, (expected, sizes) => {
      const bytes = Buffer.from(expected.map((line) => `${line}\n`).join("\n"));
      const splitter = new LineSplitter(1_000_000);
      const seen: string[] = [];
      for (let at = 0; at < bytes.length; ) {
        const size = sizes.next().value;
        seen.push(...splitter.push(bytes.subarray(at, at + size)));
        at += size;
      }
      expect(seen).toEqual(expected);
      expect(splitter.rest).toBe(0);
    }),
  );
});

test("a line that is too long is seen, and nothing after it comes out", () => {
  const splitter = new LineSplitter(4);
  expect([...splitter.push(Buffer.from("1234\n123"))]).toEqual(["1234"]);
  expect(splitter.rest).toBe(3);
  expect([...splitter.push(Buffer.from("45\nabc\n"))]).toEqual([]);
  expect(splitter.rest).toBeGreaterThan(4);
  expect([...splitter.push(Buffer.from("abc\n"))]).toEqual([]);
});
