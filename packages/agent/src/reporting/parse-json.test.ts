import { completed, parseExactly, StepMeter } from "@nodekeeper/core/lib";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type Json, reportMeter } from "./json.ts";
import { parsingExactly } from "./parse-json.ts";

const encoder = new TextEncoder();

/** Parses in chunks of at least `bytesAtOnce` bytes. */
function inParts(text: string | Uint8Array, bytesAtOnce: number): Json {
  const bytes = typeof text === "string" ? encoder.encode(text) : text;
  return completed(parsingExactly(bytes, new StepMeter(1), bytesAtOnce));
}

/** Returns the value as JSON, or "invalid". */
function outcome(parse: () => Json): string {
  try {
    return JSON.stringify(parse());
  } catch {
    return "invalid";
  }
}

const sizes = fc.integer({ min: 1, max: 40 });

describe("JSON parsed in parts", () => {
  it("is the same as JSON parsed at once", () => {
    fc.assert(
      fc.property(
        fc.json({ maxDepth: 6 }),
        sizes,
        fc.constantFrom(undefined, 1, "\t"),
        (text, size, indent) => {
          const spaced = JSON.stringify(JSON.parse(text), undefined, indent);
          expect(inParts(spaced, size)).toEqual(parseExactly(spaced));
        },
      ),
    );
  });

  it("is invalid where it is invalid at once", () => {
    const letters = fc.constantFrom(...'[]{},:"\\ 1a\n');
    fc.assert(
      fc.property(
        fc.json({ maxDepth: 4 }),
        fc.nat(),
        fc.nat(3),
        letters,
        sizes,
        (json, place, cut, letter, size) => {
          const at = place % (json.length + 1);
          const text = json.slice(0, at) + letter + json.slice(at + cut);
          expect(outcome(() => inParts(text, size))).toBe(outcome(() => parseExactly(text) as Json));
        },
      ),
      { numRuns: 500 },
    );
    fc.assert(
      fc.property(fc.array(letters), sizes, (some, size) => {
        const text = `[${some.join("")}`;
        expect(outcome(() => inParts(text, size))).toBe(outcome(() => parseExactly(text) as Json));
      }),
      { numRuns: 500 },
    );
  });

  it.each([
    "[]",
    " [ ] ",
    "[1,2]",
    "[[],[[]],{}]",
    '{"a":{"b":[1,2,{"c":"d"}]},"a":2}',
    '{"a,b":"]}","\\"":["\\\\",1]}',
    '{"é":["ü",{"\\u00e9":"€"}]}',
    "[12345678901234567890,1,-9007199254740993]",
    "\ufeff[1,2,3]",
    '{"":{"":[1]}}',
  ])("accepts %s", (text) => {
    for (let size = 1; size <= text.length; size++)
      expect(JSON.stringify(inParts(text, size))).toBe(
        JSON.stringify(parseExactly(text.replace("\ufeff", ""))),
      );
  });

  it.each([
    "[",
    "[1",
    "[1}",
    '{"a":1]',
    "[1,]",
    "[,1]",
    "[,]",
    "[[1] [2]]",
    "[[1,2] 3]",
    "[3 [1,2]]",
    "[1,2]]",
    "[1,2] 3",
    '{"a" [1,2]}',
    "{1:[1,2]}",
    '{"a":1 [1,2]}',
    '{"a":[1,2]:1}',
    '{"a":[1,2],}',
    "{[1,2]:1}",
    '["a',
    '["a\\"]',
    "[\ufeff1,2]",
    "[1,\ufeff2]",
    "[1e999,2]",
  ])("refuses %s", (text) => {
    for (let size = 1; size < text.length; size++) expect(() => inParts(text, size), `${size}`).toThrow();
  });

  it("refuses bytes that are not UTF-8", () => {
    const bytes = encoder.encode('["a","b","c"]');
    bytes[7] = 0xff;
    for (let size = 1; size <= bytes.length; size++) expect(() => inParts(bytes, size)).toThrow();
  });

  it("has a member called __proto__ as JSON has it", () => {
    const value = inParts('{"a":1,"__proto__":{"x":[1,2]},"b":2}', 1) as Record<string, unknown>;
    expect(Object.keys(value).sort()).toEqual(["__proto__", "a", "b"]);
    expect(({} as Record<string, unknown>).x).toBeUndefined();
  });

  it("names the place of an object with too many members, and of what is nested too deep", () => {
    const members = Array.from({ length: 20_001 }, (_, at) => `"k${at}":1`).join();
    expect(() => inParts(`{"a":[0,{${members}}]}`, 1_000)).toThrow("more than 20000 members at a[1]");
    expect(() => inParts(`{"a":[1,${"[2,".repeat(70)}`, 1)).toThrow("nested deeper than 64 levels at a[1]");
  });

  it("takes a step for each 32 KiB of a large value, and for a smaller one none", () => {
    const count = (text: string) => {
      const steps = parsingExactly(encoder.encode(text), reportMeter());
      for (let taken = 0; ; taken++) if (steps.next().done) return taken;
    };
    const integers = Array.from(
      { length: 15_000 },
      (_, at) => `12345678901234${String(at).padStart(6, "0")}`,
    );
    expect(count(`[${integers}]`)).toBeGreaterThanOrEqual(8);
    const objects = Array.from({ length: 9_000 }, (_, at) => `{"name":"x","k${at}":1}`);
    expect(count(`{"a":{"b":[${objects}]}}`)).toBeGreaterThanOrEqual(5);
    expect(count("[1,2]")).toBe(0);
  });
});
