import { expect, it } from "vitest";
import { Changes, MARKED_MS } from "./changes.ts";
import { nodesByKey, type TreeNode } from "./tree-node.ts";

const leaf = (key: string, value: string): TreeNode => ({ key, label: key, value, children: [] });
const tree = (...children: TreeNode[]) => nodesByKey({ ...leaf("n", ""), children });
const marked = (changes: Changes, now: number) =>
  Object.fromEntries([...changes.at(now)].map(([key, { before }]) => [key, before ?? null]));

it("values that change are marked for some seconds, with what they were", () => {
  const changes = new Changes();
  changes.take(tree(leaf("a", "1"), leaf("b", "1")), 0);
  expect(marked(changes, 0)).toEqual({});
  changes.take(tree(leaf("a", "2"), leaf("b", "1")), 100);
  expect(marked(changes, 100)).toEqual({ a: "1" });
  changes.take(tree(leaf("a", "2"), leaf("b", "5")), 200);
  expect(marked(changes, MARKED_MS + 99)).toEqual({ a: "1", b: "1" });
  expect(changes.nextEnd).toBe(MARKED_MS + 100);
  expect(marked(changes, MARKED_MS + 100)).toEqual({ b: "1" });
  expect(marked(changes, MARKED_MS + 200)).toEqual({});
  expect(changes.nextEnd).toBeUndefined();
});

it("a new node among others is marked, but not those that were only read now", () => {
  const changes = new Changes();
  changes.take(tree({ ...leaf("pool", ""), children: [] }), 0);
  changes.take(tree({ ...leaf("pool", ""), children: [leaf("d-0", "free")] }), 1);
  expect(marked(changes, 1)).toEqual({});
  changes.take(tree({ ...leaf("pool", ""), children: [leaf("d-0", "free"), leaf("d-1", "free")] }), 2);
  expect(marked(changes, 2)).toEqual({ "d-1": null });
});
