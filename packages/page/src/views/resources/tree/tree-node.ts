/** A row of the tree of resources, with what is inside it. */
export interface TreeNode {
  /** Unique in the tree, and the same as long as what it shows exists: the names from the top to here. */
  readonly key: string;
  readonly label: string;
  /** Current value, such as "23.5 GiB". Empty for a node that only has children. */
  readonly value: string;
  /** Small print beside the value: "of 16 capacity". */
  readonly note?: string;
  /** Severity, by an icon beside the value. */
  readonly tone?: "bad" | "warn";
  readonly children: readonly TreeNode[];
  /** What the details show of it besides label and value. */
  readonly facts?: readonly (readonly [what: string, value: string])[];
  /** Pods that hold it, "<namespace>/<name>". */
  readonly pods?: readonly string[];
  /** Plugins that report it. */
  readonly plugins?: readonly string[];
  /** Of a part of an object: the plugins that report the object. Which of them reports the part is not known here. */
  readonly objectPlugins?: readonly string[];
  /** The address of the view that has more of it, with its title. */
  readonly more?: readonly [address: string, title: string];
}

/** A node as it is drawn. */
export interface TreeRow {
  readonly node: TreeNode;
  /** From 1. */
  readonly level: number;
  /** Position among the nodes with the same parent, from 1, and their number. */
  readonly position: number;
  readonly count: number;
  readonly parent: string | undefined;
  /** Undefined if nothing is inside it. */
  readonly isOpen: boolean | undefined;
}

/** Returns the rows that are shown: every node whose ancestors are all open. */
export function rowsOf(root: TreeNode, open: ReadonlySet<string>): TreeRow[] {
  const rows: TreeRow[] = [];
  const add = (nodes: readonly TreeNode[], level: number, parent: string | undefined) => {
    for (const [at, node] of nodes.entries()) {
      const isOpen = node.children.length > 0 ? open.has(node.key) : undefined;
      rows.push({ node, level, position: at + 1, count: nodes.length, parent, isOpen });
      if (isOpen) add(node.children, level + 1, node.key);
    }
  };
  add([root], 1, undefined);
  return rows;
}

/** Returns all nodes by key, also those that are not shown. */
export function nodesByKey(root: TreeNode): ReadonlyMap<string, TreeNode> {
  const found = new Map<string, TreeNode>();
  const add = (node: TreeNode) => {
    found.set(node.key, node);
    node.children.forEach(add);
  };
  add(root);
  return found;
}

/** What a key of the keyboard does in a tree, by the tree view pattern of the ARIA Authoring Practices Guide. */
export type TreeMove =
  | { readonly to: string }
  | { readonly open: string }
  | { readonly close: string }
  | { readonly choose: string };

/** Returns what a key does at a row. Undefined if it does nothing. */
export function moveAt(rows: readonly TreeRow[], at: number, key: string): TreeMove | undefined {
  const row = rows[at];
  if (!row) return undefined;
  const goTo = (to: TreeRow | undefined): TreeMove | undefined => to && { to: to.node.key };
  switch (key) {
    case "ArrowDown":
      return goTo(rows[at + 1]);
    case "ArrowUp":
      return goTo(rows[at - 1]);
    case "Home":
      return goTo(rows[0]);
    case "End":
      return goTo(rows.at(-1));
    case "ArrowRight":
      if (row.isOpen === false) return { open: row.node.key };
      return row.isOpen ? goTo(rows[at + 1]) : undefined;
    case "ArrowLeft":
      if (row.isOpen) return { close: row.node.key };
      return row.parent === undefined ? undefined : { to: row.parent };
    case "Enter":
    case " ":
      return { choose: row.node.key };
    default:
      return undefined;
  }
}

/** Returns the text of open nodes in an address. */
export function openText(keys: Iterable<string>): string {
  return [...keys].map((key) => key.replaceAll("%", "%25").replaceAll("|", "%7C")).join("|");
}

/** Returns the open nodes in the text of an address. */
export function readOpen(text: string): Set<string> {
  const keys = text.split("|").map((key) => key.replaceAll("%7C", "|").replaceAll("%25", "%"));
  return new Set(keys.filter(Boolean));
}
