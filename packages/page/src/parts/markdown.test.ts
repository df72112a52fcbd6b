import { expect, it } from "vitest";
import { markdownOf, markdownTable, markdownText } from "./markdown.ts";

it.each([
  ["shared_cores, disk-io 42 > threshold 10", "shared_cores, disk-io 42 > threshold 10"],
  ["_loud_ and **louder** and `code`", "\\_loud\\_ and \\*\\*louder\\*\\* and \\`code\\`"],
  ["<img src=x onerror=alert(1)>", "\\<img src=x onerror=alert(1)>"],
  ["[click](javascript:alert(1)) ![x](y)", "\\[click](javascript:alert(1)) !\\[x](y)"],
  ["a | b \\ c ~~gone~~ &lt; R&D", "a \\| b \\\\ c \\~\\~gone\\~\\~ \\&lt; R&D"],
  ["~gone~", "\\~gone\\~"],
  ["two\nlines\u202e", "two\\\\u000alines\\\\u202e"],
])("%s has no effect in Markdown", (text, markdown) => {
  expect(markdownText(text)).toBe(markdown);
});

it("a table has a line per row, whatever is in its cells", () => {
  expect(markdownTable(["Pod", "Why"], [["a|b", "c\nd"]])).toEqual([
    "| Pod | Why |",
    "| --- | --- |",
    "| a\\|b | c\\\\u000ad |",
  ]);
});

it("parts are paragraphs, empty ones are left out, and the permalink is last", () => {
  expect(markdownOf("Round 7", [["One."], [], ["- a", "- b"]], "http://node/#/round/7")).toBe(
    "### Round 7\n\nOne.\n\n- a\n- b\n\n[Permalink](<http://node/#/round/7>)\n",
  );
});
