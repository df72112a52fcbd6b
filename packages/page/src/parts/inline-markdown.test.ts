import { expect, it } from "vitest";
import { inlinePieces } from "./inline-markdown.ts";

it("a sentence has code between backticks, and the labels of its links", () => {
  expect(inlinePieces("Set `a.b`, see [the docs](x.md#y).")).toEqual([
    { text: "Set ", isCode: false },
    { text: "a.b", isCode: true },
    { text: ", see the docs.", isCode: false },
  ]);
  expect(inlinePieces("")).toEqual([]);
});
