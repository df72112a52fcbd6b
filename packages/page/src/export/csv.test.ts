import { expect, it } from "vitest";
import { csvOf } from "./csv.ts";

it("has a header and a line per row, with all columns in each", () => {
  expect(
    csvOf([
      { Pod: "default/web", Restarts: 0 },
      { Pod: "default/db", Owner: null, Ready: true },
    ]),
  ).toBe('"Pod","Restarts","Owner","Ready"\r\n"default/web",0,,\r\n"default/db",,,true\r\n');
  expect(csvOf([])).toBe("");
});

it.each([
  ['say "hi", twice', '"say ""hi"", twice"'],
  ["two\r\nlines", '"two\r\nlines"'],
  ["a;b", '"a;b"'],
  ["", '""'],
])("quotes %j", (text, field) => {
  expect(csvOf([{ a: text }])).toBe(`"a"\r\n${field}\r\n`);
});

it.each([
  '=HYPERLINK("http://x")',
  "+1+cmd|' /C calc'!A0",
  "-2+3",
  "@SUM(A1)",
  "\t=1",
  "\r=1",
  "  =1",
  "＝1",
])("%j is no formula in a spreadsheet", (text) => {
  expect(csvOf([{ a: text }])).toBe(`"a"\r\n"'${text.replaceAll('"', '""')}"\r\n`);
});

it("a number stays one, a list is one text, and the header is no formula either", () => {
  expect(csvOf([{ "=a": -5, b: ["x", "y"], c: ["=1"] }])).toBe('"\'=a","b","c"\r\n-5,"x; y","\'=1"\r\n');
});
