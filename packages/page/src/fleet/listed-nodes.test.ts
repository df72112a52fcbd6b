import type { FleetNode, FleetReading } from "@nodekeeper/api/fleet";
import { expect, it } from "vitest";
import { byName, listNodes, stateOf, totalsOf } from "./listed-nodes.ts";

const reading: FleetReading = {
  ...{
    at: 1_000,
    version: "0.1.0",
    startedAt: 0,
    isReady: true,
    mode: "dryRun",
    plugins: 2,
    failing: 0,
    refused: 0,
  },
  ...{ evicted: 0, dryRunEvicted: 0, conditions: [], problems: [] },
};
const node = (name: string, more: Partial<FleetReading> = {}, of: Partial<FleetNode> = {}): FleetNode => ({
  ...{ node: name, condition: "Ready", hasAgent: true, reading: { ...reading, ...more } },
  ...of,
});
const silent = (name: string): FleetNode => ({ node: name, hasAgent: true, problem: "pod agent is Pending" });

it.each<[string, FleetNode]>([
  ["ready", node("a")],
  ["cordoned", node("a", {}, { isCordoned: true })],
  ["agent not ready", node("a", { isReady: false })],
  ["no answer", node("a", {}, { problem: "timed out" })],
  ["no agent", { node: "a", condition: "Ready", hasAgent: false }],
  ["not read yet", { node: "a", hasAgent: true }],
  ["node not ready", node("a", {}, { condition: "NotReady" })],
  ["node unknown", { ...silent("a"), condition: "Unknown" }],
])("a node is %s", (word, given) => {
  expect(stateOf(given).word).toBe(word);
});

it("sorts names with their numbers", () => {
  const nodes = ["n10", "n2", "n1"].map((name) => node(name));
  expect(byName(nodes).map(({ node }) => node)).toEqual(["n1", "n2", "n10"]);
});

const nodes = [
  node("a", { version: "0.10.0", evicted: 1 }),
  node("b", { version: "0.9.0", conditions: ["MemoryPressure"] }),
  silent("c"),
  node("d", {
    version: "0.9.0",
    dryRunEvicted: 5,
    problems: [{ what: "failing", name: "disk-io", message: "timed out" }],
  }),
];
const namesOf = (filter: Partial<Parameters<typeof listNodes>[1]>, sort = "") =>
  listNodes(nodes, { text: "", only: "", ...filter }, sort)
    .map(({ node }) => node)
    .join("");

it.each([
  ["", "abcd"],
  ["evicted", "badc"],
  ["-evicted", "dabc"],
  ["version", "bdac"],
  ["-state", "cabd"],
  ["unheard-of", "abcd"],
])("sorts by '%s'; nodes without a value come last", (sort, names) => {
  expect(namesOf({}, sort)).toBe(names);
});

it.each([
  ["problems", "cd"],
  ["pressure", "b"],
  ["evicted", "ad"],
  ["silent", "c"],
] as const)("filters by %s", (only, names) => {
  expect(namesOf({ only })).toBe(names);
});

it.each([
  ["memorypressure", "b"],
  ["DISK-IO", "d"],
  ["pending", "c"],
  ["0.9", "bd"],
  ["nothing", ""],
])("finds %s", (text, names) => {
  expect(namesOf({ text })).toBe(names);
});

it("has nodes that are gone only on request, or by a text", () => {
  const gone: FleetNode = { node: "old", hasAgent: false, archived: { oldest: 1, newest: 2 } };
  const names = (text: string, only: "" | "gone" | "silent") =>
    listNodes([...nodes, gone], { text, only }, "").map(({ node }) => node);
  expect(names("", "")).not.toContain("old");
  expect(names("", "silent")).not.toContain("old");
  expect(names("", "gone")).toEqual(["old"]);
  expect(names("ol", "")).toEqual(["old"]);
  expect(stateOf(gone).word).toBe("gone");
});

it("adds up what the nodes have", () => {
  expect(totalsOf(nodes)).toEqual({
    ...{ agents: 4, read: 4, silent: 1, problems: 2, pressure: 1, evicted: 1 },
    versions: [
      ["0.10.0", 1],
      ["0.9.0", 2],
    ],
  });
});

it("does not count what agents said that are silent now", () => {
  const old = node("a", { evicted: 3, conditions: ["memory"] }, { problem: "timed out" });
  expect(totalsOf([old])).toMatchObject({ silent: 1, pressure: undefined, evicted: undefined });
  expect(totalsOf([old, node("b", { evicted: 1 })])).toMatchObject({ pressure: 0, evicted: 1 });
});
