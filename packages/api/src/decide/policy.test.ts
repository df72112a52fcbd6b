import { expect, it } from "vitest";
import { isDryRun, isFullDryRun } from "./policy.ts";

// The cases of upstream's IsNameEnabled, and those in which order counts.
it.each([
  [[], false, false],
  [["a"], true, false],
  [["b"], false, false],
  [["*"], true, true],
  [["*", "a"], true, true],
  [["*", "-a"], false, false],
  [["-a", "*"], false, false],
  [["*", "-b"], true, false],
  [["-a"], false, false],
  [["a", "-a"], true, false],
  [["-a", "a"], false, false],
  [["*", "a", "-a"], true, true],
  [["*", "-a", "a"], false, false],
  [["-*"], false, false],
])("dryRunPlugins %j: plugin a is in dry run: %s, all are: %s", (dryRunPlugins, isDry, isFull) => {
  expect(isDryRun({ dryRunPlugins }, "a")).toBe(isDry);
  expect(isFullDryRun({ dryRunPlugins })).toBe(isFull);
});
