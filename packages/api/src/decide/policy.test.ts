import { expect, it } from "vitest";
import { evictionMode, isDryRun, isFullDryRun } from "./policy.ts";

// The cases of upstream's IsNameEnabled, and those in which order counts.
it.each([
  [[], false, false, "live"],
  [["a"], true, false, "mixed"],
  [["b"], false, false, "mixed"],
  [["*"], true, true, "dryRun"],
  [["*", "a"], true, true, "dryRun"],
  [["*", "-a"], false, false, "mixed"],
  [["-a", "*"], false, false, "mixed"],
  [["*", "-b"], true, false, "mixed"],
  [["-a"], false, false, "live"],
  [["a", "-a"], true, false, "mixed"],
  [["-a", "a"], false, false, "live"],
  [["*", "a", "-a"], true, true, "dryRun"],
  [["*", "-a", "a"], false, false, "mixed"],
  [["-*"], false, false, "live"],
])(
  "dryRunPlugins %j: plugin a is in dry run: %s, all are: %s; mode %s",
  (dryRunPlugins, isDry, isFull, mode) => {
    expect(isDryRun({ dryRunPlugins }, "a")).toBe(isDry);
    expect(isFullDryRun({ dryRunPlugins })).toBe(isFull);
    expect(evictionMode({ dryRunPlugins })).toBe(mode);
  },
);
