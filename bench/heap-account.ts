import type { Account } from "./memory-account.ts";

/** The parts of a heap snapshot of V8 that are read: nodes are consecutive numbers, one for each field. */
export interface HeapSnapshot {
  snapshot: { meta: { node_fields: readonly string[]; node_types: readonly (string | readonly string[])[] } };
  nodes: readonly number[];
  strings: readonly string[];
}

const MIB = 2 ** 20;
const MOST_CONSTRUCTORS = 10;

const kinds: Readonly<Record<string, string>> = {
  code: "code and its metadata",
  closure: "closures",
  "object shape": "maps and descriptors",
  string: "strings and texts of scripts",
  "concatenated string": "strings and texts of scripts",
  "sliced string": "strings and texts of scripts",
  array: "arrays of elements and properties",
  object: "objects",
  native: "outside of V8's heap, such as array buffers",
};

/**
 * Returns the shallow size of reachable objects in MiB, by kind and for the ten constructors whose objects have the
 * largest total.
 */
export function heapAccountOf({ snapshot, nodes, strings }: HeapSnapshot): Account {
  const { node_fields: fields, node_types: types } = snapshot.meta;
  const [type, name, size] = ["type", "name", "self_size"].map((field) => fields.indexOf(field));
  const typeNames = types[type!] as readonly string[];
  const byKind = new Map<string, number>();
  const byConstructor = new Map<string, number>();
  const add = (sums: Map<string, number>, key: string, bytes: number) =>
    sums.set(key, (sums.get(key) ?? 0) + bytes / MIB);
  for (let at = 0; at < nodes.length; at += fields.length) {
    const typeName = typeNames[nodes[at + type!]!]!;
    const bytes = nodes[at + size!]!;
    add(byKind, `reachable: ${kinds[typeName] ?? "other"}`, bytes);
    if (typeName === "object") add(byConstructor, `objects of ${strings[nodes[at + name!]!]}`, bytes);
  }
  const bySize = (sums: Map<string, number>) => [...sums].sort(([, a], [, b]) => b - a);
  return Object.fromEntries([...bySize(byKind), ...bySize(byConstructor).slice(0, MOST_CONSTRUCTORS)]);
}
