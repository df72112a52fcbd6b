import { useEffect, useMemo, useState } from "preact/hooks";
import { type Change, Changes } from "./changes.ts";
import type { TreeNode } from "./tree-node.ts";

/** Returns the nodes whose values changed in the last seconds. Rerenders when a mark ends. */
export function useChanges(nodes: ReadonlyMap<string, TreeNode>): ReadonlyMap<string, Change> {
  const [changes] = useState(() => new Changes());
  const [, redraw] = useState(0);
  useMemo(() => changes.take(nodes, performance.now()), [nodes]);
  const marked = changes.at(performance.now());
  const end = changes.nextEnd;
  useEffect(() => {
    if (end === undefined) return;
    const timer = setTimeout(() => redraw((times) => times + 1), end - performance.now() + 1);
    return () => clearTimeout(timer);
  }, [end]);
  return marked;
}
