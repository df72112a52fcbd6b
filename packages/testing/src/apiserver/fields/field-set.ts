/**
 * A set of field paths in the format of managedFields' fieldsV1: `{"f:spec": {"f:taints": {}}}`. A child without fields
 * is a member. A child with fields is a member only if it contains ".". The root is never a member: `{}` is the empty
 * set. Sets are immutable and share subtrees.
 */
export type FieldSet = { readonly [element: string]: FieldSet };

export const emptySet: FieldSet = Object.freeze({});

const MEMBER = ".";

export function isEmpty(set: FieldSet): boolean {
  for (const _ in set) return false;
  return true;
}

/** Returns the child at a path element. Undefined if there is none. */
export function child(set: FieldSet | undefined, element: string): FieldSet | undefined {
  return set && Object.hasOwn(set, element) ? set[element] : undefined;
}

/** Returns whether a child's own path is in the set. */
export function isMember(node: FieldSet | undefined): boolean {
  return node !== undefined && (Object.hasOwn(node, MEMBER) || isEmpty(node));
}

/** Returns the path elements below a node. */
export function elements(node: FieldSet): string[] {
  return Object.keys(node).filter((element) => element !== MEMBER);
}

/** Creates a child node. Undefined if it would be empty. */
export function nodeOf(member: boolean, children: FieldSet): FieldSet | undefined {
  if (isEmpty(children)) return member ? emptySet : undefined;
  return member ? { [MEMBER]: emptySet, ...children } : children;
}

interface Rule {
  /** Returns whether a path is in the result, given its membership in both sets. */
  keep(inLeft: boolean, inRight: boolean): boolean;
  readonly keepsLeft: boolean;
  readonly keepsRight: boolean;
}

const unionRule: Rule = { keep: (a, b) => a || b, keepsLeft: true, keepsRight: true };
const differenceRule: Rule = { keep: (a, b) => a && !b, keepsLeft: true, keepsRight: false };
const intersectionRule: Rule = { keep: (a, b) => a && b, keepsLeft: false, keepsRight: false };

export const union = (a: FieldSet, b: FieldSet): FieldSet => combineChildren(a, b, unionRule);

/** Paths of `a` that are not in `b`. Descendants of a path in `b` remain unless they are in `b` themselves. */
export const difference = (a: FieldSet, b: FieldSet): FieldSet => combineChildren(a, b, differenceRule);

export const intersection = (a: FieldSet, b: FieldSet): FieldSet => combineChildren(a, b, intersectionRule);

function combineChildren(a: FieldSet, b: FieldSet, rule: Rule): FieldSet {
  const result: Record<string, FieldSet> = {};
  for (const element of elements(a)) {
    const node = combineNodes(a[element], child(b, element), rule);
    if (node) result[element] = node;
  }
  for (const element of elements(b)) {
    if (Object.hasOwn(a, element)) continue;
    const node = combineNodes(undefined, b[element], rule);
    if (node) result[element] = node;
  }
  return result;
}

function combineNodes(a: FieldSet | undefined, b: FieldSet | undefined, rule: Rule): FieldSet | undefined {
  if (a === undefined) return rule.keepsRight ? b : undefined;
  if (b === undefined) return rule.keepsLeft ? a : undefined;
  return nodeOf(rule.keep(isMember(a), isMember(b)), combineChildren(a, b, rule));
}

/** Returns all paths of the set as formatted by the API: `.status.conditions[type="Ready"].status`. */
export function listPaths(set: FieldSet): string[] {
  const paths: string[] = [];
  const visit = (node: FieldSet, prefix: string) => {
    for (const element of elements(node)) {
      const path = prefix + printElement(element);
      const below = node[element]!;
      if (isMember(below)) paths.push(path);
      visit(below, path);
    }
  };
  visit(set, "");
  return paths;
}

function printElement(element: string): string {
  const value = element.slice(2);
  if (element.startsWith("f:")) return `.${value}`;
  if (element.startsWith("v:")) return `[=${value}]`;
  if (element.startsWith("i:")) return `[${value}]`;
  const key = JSON.parse(value) as Record<string, unknown>;
  return `[${Object.entries(key)
    .map(([field, item]) => `${field}=${JSON.stringify(item)}`)
    .join(",")}]`;
}
