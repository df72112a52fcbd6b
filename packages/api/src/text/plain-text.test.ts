import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { plainJson, plainLines, plainText } from "./plain-text.ts";

const nasty = "\u001b[2J\u009b31m\u0007\u202e\u2066\u2028\u200b\ufeff\r\n\u0000\u007f";

describe("plain text", () => {
  it("keeps printable characters and escapes the others", () => {
    expect(plainText("grüße, 世界 🙂\t!")).toBe("grüße, 世界 🙂\\t!");
    expect(plainText("a\u001b[31mred\nfake row")).toBe("a\\u001b[31mred\\nfake row");
    expect(plainText("gpj.\u202egnp\u{e0041}")).toBe("gpj.\\u202egnp\\udb40\\udc41");
    expect(plainText(nasty)).toMatch(/^[\u0020-\u007e]*$/);
  });

  it("keeps line breaks in multi-line messages", () => {
    expect(plainLines("2 problems:\n  one\u001b[2J\n  two")).toBe("2 problems:\n  one\\u001b[2J\n  two");
  });

  it("is truncated to a maximum length", () => {
    expect(plainText("a".repeat(300))).toBe("a".repeat(300));
    expect(plainText("a".repeat(301))).toBe(`${"a".repeat(297)}...`);
    expect(plainText("abcdef", 5)).toBe("ab...");
  });
});

describe("plain JSON", () => {
  it("parses to the same value, and contains no terminal control characters", () => {
    for (const indent of [0, 2]) {
      const text = plainJson({ reason: nasty, list: [nasty] }, indent);
      expect(JSON.parse(text)).toEqual({ reason: nasty, list: [nasty] });
      expect(text.replaceAll("\n", "")).toMatch(/^[\u0020-\u007e]*$/);
    }
    expect(plainJson({ a: 1 }, 2)).toBe('{\n  "a": 1\n}');
    fc.assert(
      fc.property(fc.json({ stringUnit: "binary" }), (json) => {
        const value = JSON.parse(json);
        expect(JSON.parse(plainJson(value, 2))).toEqual(value);
      }),
    );
  });
});
