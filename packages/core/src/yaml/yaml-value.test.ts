import { describe, expect, it } from "vitest";
import { parseYaml } from "./index.ts";

const parse = (text: string) => parseYaml(text, 1_000_000);
const problemsOf = (text: string) =>
  parse(text).problems.map(({ place, message }) => `${place?.line}:${place?.column}: ${message}`);

describe("an alias", () => {
  it.each([
    ["a value", "a: &x 1\nb: *x", { a: 1, b: 1 }],
    [
      "the last value before it with its anchor",
      "a: &x 1\nb: *x\nc: &x 2\nd: *x",
      { a: 1, b: 1, c: 2, d: 2 },
    ],
    ["a list within a list", "a: &x [1]\nb: [*x, *x]", { a: [1], b: [[1], [1]] }],
  ])("stands for %s", (_, text, expected) => {
    const { root } = parse(text);
    expect(root?.plain()).toEqual(expected);
    const read = Object.fromEntries(root!.entries().map(({ name, value }) => [name, value.plain()]));
    expect(read).toEqual(expected);
  });

  it.each([
    ["without an anchor", "a: 1\nb: *x", "2:4: *x refers to an undefined anchor"],
    ["before its anchor", "a: *x\nb: &x 1", "1:4: *x refers to an undefined anchor"],
    ["within its own anchor", "a: &x\n  b: *x", "2:6: *x refers to a value that contains it"],
  ])("%s is refused at its place", (_, text, problem) => expect(problemsOf(text)).toEqual([problem]));

  it("is one of at most 1,000", () => {
    const aliases = (count: number) => `a: &x 1\nb: [${Array(count).fill("*x").join(", ")}]`;
    expect(problemsOf(aliases(1_000))).toEqual([]);
    expect(problemsOf(aliases(1_001))).toEqual([
      `2:${4 + 1_000 * 4 + 1}: *x is one of more than 1000 aliases`,
    ]);
  });
});
