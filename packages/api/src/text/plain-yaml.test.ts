import { describe, expect, it } from "vitest";
import { parse } from "yaml";
import { plainLines } from "./plain-text.ts";
import { plainYaml } from "./plain-yaml.ts";

describe("plainYaml", () => {
  it("prints block style, without quotes where none are needed", () => {
    const value = { a: 1, list: [{ x: "y z", of: [] }, [1, 2]], none: null, left: undefined, "k.8s/x": {} };
    expect(plainYaml(value)).toBe(
      ["a: 1", "list:", "- x: y z", "  of: []", "- - 1", "  - 2", "none: null", "k.8s/x: {}", ""].join("\n"),
    );
    expect([plainYaml([]), plainYaml("x"), plainYaml(undefined)]).toEqual(["[]\n", "x\n", "null\n"]);
  });

  it.each([
    ...[
      "",
      " x",
      "x ",
      "- x",
      "a: b",
      "a:",
      "a #b",
      "#",
      "yes",
      "Null",
      "1",
      "1e3",
      "0x1",
      "2026-11-22",
      "~",
      "*a",
      "&a",
    ],
    ...[
      "!t",
      "%",
      "@x",
      "`",
      "'",
      '"',
      "{a",
      "[a",
      "|",
      ">",
      "?",
      ",",
      "\t",
      "a\nb",
      "\u202egnp",
      "é",
      ".inf",
      "=",
      "<<",
    ],
  ])("reads %j back as it was, as text and as a key", (text) => {
    const value = { [text]: [text, { [text]: text }] };
    expect(parse(plainYaml(value), { schema: "yaml-1.1" })).toEqual(value);
    expect(parse(plainYaml(value))).toEqual(value);
    // Nothing in it does anything to a terminal.
    expect(plainLines(plainYaml(value))).toBe(plainYaml(value));
  });
});
