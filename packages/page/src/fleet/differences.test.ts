import type { NodeDetails } from "@nodekeeper/api/fleet";
import { expect, it } from "vitest";
import { compareNodes } from "./differences.ts";

function details(node: string, configuration: object, more: Partial<NodeDetails> = {}): NodeDetails {
  return {
    ...{ node, object: {}, plugins: [], configuration: configuration as NodeDetails["configuration"] },
    agent: { version: "0.1.0", nodeName: node, node: "v24", startedAt: 0 },
    ...more,
  };
}

const differing = (a: NodeDetails, b: NodeDetails) =>
  compareNodes(a, b).flatMap(({ title, rows }) =>
    rows.filter(({ differs }) => differs).map(({ name, values }) => [title, name, ...values]),
  );

it("compares settings by their paths, and items of lists by their names", () => {
  const a = details("a", {
    eviction: { cooldown: "5m", ranking: ["qos", "priority"], rules: [{ name: "x", cpu: 1 }] },
  });
  const b = details("b", {
    eviction: {
      cooldown: "5m",
      ranking: ["priority"],
      rules: [
        { name: "y", cpu: 1 },
        { name: "x", cpu: 2 },
      ],
    },
  });
  expect(differing(a, b)).toEqual([
    ["Settings", "eviction.ranking", "qos, priority", "priority"],
    ["Settings", "eviction.rules[x].cpu", "1", "2"],
    ["Settings", "eviction.rules[y].name", undefined, "y"],
    ["Settings", "eviction.rules[y].cpu", undefined, "1"],
  ]);
});

it("has policies apart from the other settings", () => {
  const policies = (rule: string) => ({ eviction: { policies: [{ name: "batch", rule }] } });
  expect(differing(details("a", policies("x")), details("b", policies("y")))).toEqual([
    ["Policies", "eviction.policies[batch].rule", "x", "y"],
  ]);
});

it("does not mark the nodes' own names", () => {
  expect(differing(details("a", { nodeName: "a" }), details("b", { nodeName: "b" }))).toEqual([]);
  expect(differing(details("a", { nodeName: "a" }), details("b", { nodeName: "c" }))).toHaveLength(1);
});

it("compares versions of the node's software, and plugins by name and type", () => {
  const plugin = (name: string, state: string, error?: string) =>
    ({
      name,
      type: "ReporterPlugin",
      state,
      versions: ["v1"],
      error,
    }) as unknown as NodeDetails["plugins"][number];
  const a = details("a", {}, { object: { kubeletVersion: "v1.34.0" }, plugins: [plugin("p", "registered")] });
  const b = details(
    "b",
    {},
    { object: { kubeletVersion: "v1.35.0" }, plugins: [plugin("p", "refused", "bad name")] },
  );
  expect(differing(a, b)).toEqual([
    ["Node and agent", "kubeletVersion", "v1.34.0", "v1.35.0"],
    ["Plugins", "p (ReporterPlugin)", "registered; v1", "refused; v1; bad name"],
  ]);
});
