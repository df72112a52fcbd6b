import { h } from "preact";
import { expect, it } from "vitest";
import { breakable } from "./breakable.tsx";
import { Prose } from "./prose.tsx";
import { hasShortWords, isShort } from "./short-words.ts";

const LONGEST = "a".repeat(20);
function Part(_: { name: string }) {
  return null;
}

it.each([
  ["a word", LONGEST, true],
  ["a longer word", `${LONGEST}a`, false],
  ["many words", `${LONGEST} ${LONGEST} ${LONGEST}`, true],
  ["a number", 12_345, true],
  ["a word and small print", ["Guaranteed ", h("small", null, "shared_cores")], true],
  ["a word and long small print", ["Guaranteed ", h("small", null, `${LONGEST}a`)], false],
  ["parts of one word", [LONGEST, "a"], false],
  ["a sentence", h(Prose, { text: "named by no plugin" }), true],
  ["a name that is broken at its signs", breakable("nodekeeper.dev/memory-pressure=:NoSchedule"), true],
  ["a name with a long word", breakable(`nodekeeper.dev/${LONGEST}a:NoSchedule`), false],
  ["a part whose text is not known", ["Guaranteed ", h(Part, { name: "web" })], false],
  ["a condition that is not met", ["Guaranteed", false, undefined, null], true],
])("has words that are not broken: %s", (_, content, expected) => {
  expect(hasShortWords(content)).toBe(expected);
});

it.each([
  ["dry run: not evicted", true],
  ["evicted: pod deleted by the kubelet", false],
  [[1, " changed"], true],
])("is a text on one line: %s", (content, expected) => {
  expect(isShort(content)).toBe(expected);
});
