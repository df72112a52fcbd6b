import { describe, expect, it } from "vitest";
import { moveAt, nodesByKey, openText, readOpen, rowsOf, type TreeNode } from "./tree-node.ts";

const node = (key: string, ...children: TreeNode[]): TreeNode => ({ key, label: key, value: "", children });
const root = node("n", node("a", node("a/1"), node("a/2", node("a/2/x"))), node("b"));

describe("rows of a tree", () => {
  it("are the nodes whose ancestors are all open, with their place among their siblings", () => {
    const rows = rowsOf(root, new Set(["n", "a"]));
    expect(
      rows.map(({ node, level, position, count, isOpen }) => [node.key, level, position, count, isOpen]),
    ).toEqual([
      ["n", 1, 1, 1, true],
      ["a", 2, 1, 2, true],
      ["a/1", 3, 1, 2, undefined],
      ["a/2", 3, 2, 2, false],
      ["b", 2, 2, 2, undefined],
    ]);
    expect(rowsOf(root, new Set(["a"])).map(({ node }) => node.key)).toEqual(["n"]);
  });

  it("are found by key also where they are not shown", () => {
    expect([...nodesByKey(root).keys()]).toEqual(["n", "a", "a/1", "a/2", "a/2/x", "b"]);
  });
});

it.each([
  [0, "ArrowDown", { to: "a" }],
  [0, "ArrowUp", undefined],
  [4, "ArrowDown", undefined],
  [2, "Home", { to: "n" }],
  [0, "End", { to: "b" }],
  [1, "ArrowRight", { to: "a/1" }],
  [3, "ArrowRight", { open: "a/2" }],
  [2, "ArrowRight", undefined],
  [1, "ArrowLeft", { close: "a" }],
  [3, "ArrowLeft", { to: "a" }],
  [4, "ArrowLeft", { to: "n" }],
  [4, "Enter", { choose: "b" }],
  [2, " ", { choose: "a/1" }],
  [2, "x", undefined],
  [9, "Home", undefined],
])("at row %d, %s does %o", (at, key, move) => {
  expect(moveAt(rowsOf(root, new Set(["n", "a"])), at, key)).toEqual(move);
});

it.each([[["n", "a/b c"]], [["x|y", "50%", "%7C"]], [[]]])(
  "open nodes %o are the same after the address",
  (keys) => {
    expect([...readOpen(openText(keys))]).toEqual(keys);
  },
);
