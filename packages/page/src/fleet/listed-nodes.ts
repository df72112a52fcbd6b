import type { FleetNode } from "@nodekeeper/api/fleet";
import { evictionModes } from "@nodekeeper/api/wording";

/** What the list is filtered by. Empty: not filtered. */
export interface NodeFilter {
  /** A part of a node's name, version, or of its problems and conditions. */
  text: string;
  only: OnlyKey | "";
}

/** Filters, each with its title. */
export const onlyFilters = {
  problems: ["With problems", (node) => isTroubled(node)],
  pressure: ["Under pressure", (node) => (answerOf(node)?.conditions.length ?? 0) > 0],
  evicted: ["With evictions", (node) => evictedOf(answerOf(node)) > 0],
  silent: [
    "Without an answer",
    ({ problem, hasAgent, archived }) => problem !== undefined || (!hasAgent && !archived),
  ],
  gone: ["Gone", ({ archived }) => archived !== undefined],
} as const satisfies Record<string, readonly [title: string, matches: (node: FleetNode) => boolean]>;
export type OnlyKey = keyof typeof onlyFilters;

/** Keys by which nodes are sorted; those without a value come last. */
export const nodeSortKeys = {
  node: ({ node }) => node,
  state: (node) => stateOf(node).rank,
  mode: ({ reading }) => reading?.mode,
  pressure: ({ reading }) => reading?.conditions.length,
  evicted: ({ reading }) => reading && evictedOf(reading),
  failing: ({ reading }) => reading && reading.failing + reading.refused,
  version: ({ reading }) => reading?.version,
  read: ({ reading, archived }) => reading?.at ?? archived?.newest,
} as const satisfies Record<string, (node: FleetNode) => string | number | undefined>;
export type NodeSortKey = keyof typeof nodeSortKeys;

export function isNodeSortKey(key: string): key is NodeSortKey {
  return Object.hasOwn(nodeSortKeys, key);
}

export function isOnlyKey(key: string): key is OnlyKey {
  return Object.hasOwn(onlyFilters, key);
}

/** State of a node and its agent in a word. Higher ranks are worse. */
export interface NodeState {
  word: string;
  tone: "ok" | "warn" | "bad" | "quiet";
  rank: number;
}

export function stateOf(node: FleetNode): NodeState {
  const { condition, isCordoned, hasAgent, archived, reading, problem } = node;
  if (archived) return { word: "gone", tone: "quiet", rank: 1 };
  if (condition === "NotReady" || condition === "Unknown")
    return { word: condition === "NotReady" ? "node not ready" : "node unknown", tone: "bad", rank: 6 };
  if (!hasAgent) return { word: "no agent", tone: "quiet", rank: 3 };
  if (problem !== undefined) return { word: "no answer", tone: "bad", rank: 5 };
  if (!reading) return { word: "not read yet", tone: "quiet", rank: 1 };
  if (!reading.isReady) return { word: "agent not ready", tone: "bad", rank: 4 };
  if (isCordoned) return { word: "cordoned", tone: "warn", rank: 2 };
  return { word: "ready", tone: "ok", rank: 0 };
}

// "worker-2" before "worker-10".
const NAMES = new Intl.Collator("en", { numeric: true });

/** Sorts nodes by name. */
export function byName(nodes: Iterable<FleetNode>): FleetNode[] {
  return [...nodes].sort((a, b) => NAMES.compare(a.node, b.node));
}

/**
 * Returns the nodes that match a filter, sorted by a key ("-key": descending). Nodes with equal keys keep their order.
 * Nodes that are gone are included only if the filter has a text or selects them, because there may be many.
 */
export function listNodes(
  nodes: readonly FleetNode[],
  { text, only }: NodeFilter,
  sort: string,
): FleetNode[] {
  const wanted = text.toLowerCase();
  const found = nodes.filter(
    (node) =>
      (only === "" ? wanted !== "" || !node.archived : onlyFilters[only][1](node)) &&
      (wanted === "" || textOf(node).includes(wanted)),
  );
  const key = sort.replace(/^-/, "");
  return isNodeSortKey(key) ? sorted(found, nodeSortKeys[key], sort.startsWith("-")) : found;
}

function sorted(
  nodes: FleetNode[],
  valueIn: (node: FleetNode) => string | number | undefined,
  isDescending: boolean,
): FleetNode[] {
  return nodes.toSorted((a, b) => {
    const [first, second] = [valueIn(a), valueIn(b)];
    if (first === second) return 0;
    if (first === undefined) return 1;
    if (second === undefined) return -1;
    return (isDescending ? -1 : 1) * compare(first, second);
  });
}

function compare(a: string | number, b: string | number): number {
  if (typeof a === "number" && typeof b === "number") return a - b;
  return NAMES.compare(String(a), String(b));
}

/** What the totals above the list say. */
export interface Totals {
  /** Nodes with an agent. */
  agents: number;
  /** Those that have answered, or whose reading failed. */
  read: number;
  silent: number;
  problems: number;
  /** Counts only nodes whose agent responded to the last request. Undefined if there are none. */
  pressure: number | undefined;
  evicted: number | undefined;
  versions: readonly (readonly [version: string, count: number])[];
}

export function totalsOf(nodes: readonly FleetNode[]): Totals {
  const readings = nodes.flatMap(({ reading }) => reading ?? []);
  const versions = Map.groupBy(readings, ({ version }) => version);
  const answers = nodes.flatMap((node) => answerOf(node) ?? []);
  const current = answers.length > 0 ? answers : undefined;
  return {
    agents: nodes.filter(({ hasAgent }) => hasAgent).length,
    read: nodes.filter(({ hasAgent, reading, problem }) => hasAgent && (reading ?? problem) !== undefined)
      .length,
    silent: nodes.filter(onlyFilters.silent[1]).length,
    problems: nodes.filter(isTroubled).length,
    pressure: current?.filter(({ conditions }) => conditions.length > 0).length,
    evicted: current?.reduce((sum, { evicted }) => sum + evicted, 0),
    versions: [...versions].map(([version, some]) => [version, some.length] as const).sort(),
  };
}

/** Returns the last reading of an agent. Undefined if the agent does not answer now: the reading is then stale. */
function answerOf({ reading, problem }: FleetNode): FleetNode["reading"] {
  return problem === undefined ? reading : undefined;
}

function isTroubled(node: FleetNode): boolean {
  return stateOf(node).tone === "bad" || (node.reading?.problems.length ?? 0) > 0;
}

function evictedOf(reading: FleetNode["reading"]): number {
  return (reading?.evicted ?? 0) + (reading?.dryRunEvicted ?? 0);
}

function textOf(node: FleetNode): string {
  const { reading, problem = "" } = node;
  const problems = reading?.problems.flatMap(({ what, name, message }) => [what, name, message]) ?? [];
  const mode = reading === undefined || reading.mode === "off" ? [] : [evictionModes[reading.mode]];
  return [
    node.node,
    stateOf(node).word,
    problem,
    reading?.version,
    ...mode,
    ...problems,
    ...(reading?.conditions ?? []),
  ]
    .join("\n")
    .toLowerCase();
}
