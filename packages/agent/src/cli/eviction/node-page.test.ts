import type { NodeExplanation } from "@nodekeeper/api/records";
import { expect, it } from "vitest";
import { nodePage } from "./node-page.ts";

const none: NodeExplanation = {
  ...{ nodeName: "worker-1", at: 1, transitionMs: 60_000, conditions: [], taints: [], isDryRun: false },
  ...{ events: [], recordsSince: null, coverage: { oldest: null, gaps: [] } },
};
const output = { write: () => {}, isTerminal: false, columns: 80 };
const own = { taint: "nodekeeper.dev/DiskHot:NoSchedule", isOwn: true, isDesired: false };

it.each<[string, Partial<NodeExplanation>, string]>([
  ["nothing is set", {}, "No condition or taint is set by Nodekeeper."],
  ["a taint of it is left", { taints: [own] }, "No condition is set by Nodekeeper."],
  [
    "the Node was not read",
    { taints: null },
    "No condition is set by Nodekeeper. The taints of the Node are not known.",
  ],
  [
    "no round is recorded, as in a copy of the records",
    { taints: null, transitionMs: null },
    "The conditions are not known: no round is recorded.",
  ],
])("the page about a node, if %s: %s", (_, changes, text) => {
  expect(
    nodePage({ ...none, ...changes }, output)
      .split("\n\n")[1]
      ?.trim()
      .split("\n")[0],
  ).toBe(text);
});
