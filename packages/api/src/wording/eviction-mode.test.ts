import { expect, it } from "vitest";
import { evictionMode } from "../decide/index.ts";
import { dryRunText, evictionModeText } from "./eviction-mode.ts";

it.each([
  [["a"], "a"],
  [["a", "b"], "a, b"],
  [["a", "-b"], "a"],
  [["*"], "all plugins"],
  [["*", "a"], "all plugins"],
  [["*", "-a", "-b"], "all plugins except a, b"],
  [["*", "a", "-a"], "all plugins"],
])("%j: dry run for %s", (list, text) => expect(dryRunText(list, (name) => name)).toBe(text));

it.each([
  [[], "live: pods are evicted"],
  [["-a"], "live: pods are evicted"],
  [
    ["*"],
    "dry run: no pod is evicted, and no taint is added or removed; to evict, set eviction.dryRunPlugins to [] (Helm: eviction.dryRun=false)",
  ],
  [
    ["*", "-a"],
    "partly dry run: requests of all plugins except a are only recorded; to evict for all plugins, set eviction.dryRunPlugins to [] (Helm: eviction.dryRun=false)",
  ],
  [["a"], expect.stringMatching(/^partly dry run: requests of a are only recorded/)],
])("dryRunPlugins %j: %s", (dryRunPlugins, text) => {
  expect(evictionModeText(evictionMode({ dryRunPlugins }), dryRunPlugins)).toEqual(text);
});
