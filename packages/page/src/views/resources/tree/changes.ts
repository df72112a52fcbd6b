import type { TreeNode } from "./tree-node.ts";

/** How long a changed value is marked, milliseconds. */
export const MARKED_MS = 6_000;

/** A value that changed lately. */
export interface Change {
  /** The value before; undefined if the node is new. */
  readonly before: string | undefined;
}

/** Remembers which values of a tree changed within `MARKED_MS`. */
export class Changes {
  #before: ReadonlyMap<string, TreeNode> | undefined;
  readonly #marked = new Map<string, Change & { until: number }>();

  /**
   * Compares a tree with the previous one. Nodes of the first tree, and new nodes without a sibling in the previous
   * tree, do not count as changed, because they were only read for the first time.
   * @param now monotonic milliseconds
   */
  take(nodes: ReadonlyMap<string, TreeNode>, now: number): void {
    const before = this.#before;
    this.#before = nodes;
    if (!before) return;
    for (const [key, node] of nodes) {
      const old = before.get(key);
      if (old && old.value !== node.value)
        this.#marked.set(key, { before: old.value, until: now + MARKED_MS });
      // One of several children is new: its parent was there with others.
      const known = node.children.some((child) => before.has(child.key));
      if (!old || !known) continue;
      for (const child of node.children)
        if (!before.has(child.key))
          this.#marked.set(child.key, { before: undefined, until: now + MARKED_MS });
    }
  }

  /** Returns the changes of the last `MARKED_MS`, by the key of the node. */
  at(now: number): ReadonlyMap<string, Change> {
    for (const [key, { until }] of this.#marked) if (until <= now) this.#marked.delete(key);
    return this.#marked;
  }

  /** When the next mark ends, monotonic milliseconds. Undefined if nothing is marked. */
  get nextEnd(): number | undefined {
    const ends = [...this.#marked.values()].map(({ until }) => until);
    return ends.length > 0 ? Math.min(...ends) : undefined;
  }
}
