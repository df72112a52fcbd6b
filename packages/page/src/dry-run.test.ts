import { expect, it } from "vitest";
import { dryRunText } from "./dry-run.ts";

it.each([
  [["a"], "a"],
  [["a", "b"], "a, b"],
  [["a", "-b"], "a"],
  [["*"], "all plugins"],
  [["*", "a"], "all plugins"],
  [["*", "-a", "-b"], "all plugins except a, b"],
  [["*", "a", "-a"], "all plugins"],
])("%j: dry run for %s", (list, text) => expect(dryRunText(list, (name) => name)).toBe(text));
