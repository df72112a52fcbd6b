import type { NodeDetails } from "@nodekeeper/api/fleet";

/** A property of two nodes. */
export interface ComparedRow {
  name: string;
  /** Undefined if the node has no such property. */
  values: readonly [string | undefined, string | undefined];
  differs: boolean;
}

export interface ComparedSection {
  title: string;
  rows: readonly ComparedRow[];
}

/** Compares two nodes: their software, settings, policies and plugins. */
export function compareNodes(a: NodeDetails, b: NodeDetails): ComparedSection[] {
  const section = (
    title: string,
    valuesOf: (details: NodeDetails) => Map<string, string>,
  ): ComparedSection => ({
    title,
    rows: rowsOf([a, b], valuesOf),
  });
  return [
    section("Node and agent", nodeValues),
    section("Plugins", pluginValues),
    section("Policies", (details) => settingValues(details, true)),
    section("Settings", (details) => settingValues(details, false)),
  ];
}

function rowsOf(
  nodes: readonly [NodeDetails, NodeDetails],
  valuesOf: (details: NodeDetails) => Map<string, string>,
): ComparedRow[] {
  const [first, second] = nodes.map(valuesOf) as [Map<string, string>, Map<string, string>];
  return [...new Set([...first.keys(), ...second.keys()])].map((name) => {
    const values = [first.get(name), second.get(name)] as const;
    // A value that is the node's own name is no difference.
    const areNames = values[0] === nodes[0].node && values[1] === nodes[1].node;
    return { name, values, differs: values[0] !== values[1] && !areNames };
  });
}

function nodeValues({ object, agent }: NodeDetails): Map<string, string> {
  return new Map([["agent", agent.version], ["Node.js", agent.node], ...Object.entries(object)]);
}

function pluginValues({ plugins }: NodeDetails): Map<string, string> {
  return new Map(
    plugins
      .filter(({ name }) => name !== "")
      .map(({ name, type, state, versions, error }) => {
        const parts = [
          state,
          ...(versions.length > 0 ? [versions.join(", ")] : []),
          ...(error ? [error] : []),
        ];
        return [`${name} (${type})`, parts.join("; ")] as const;
      })
      .sort(([one], [other]) => (one < other ? -1 : 1)),
  );
}

function settingValues({ configuration }: NodeDetails, ofPolicies: boolean): Map<string, string> {
  const values = new Map<string, string>();
  addLeaves(values, "", configuration);
  return new Map([...values].filter(([path]) => /polic(?:y|ies)\b/i.test(path) === ofPolicies));
}

/** Adds each value below a path: `eviction.limits.perNode`. Items of a list by their name, or else by their place. */
function addLeaves(values: Map<string, string>, path: string, value: unknown): void {
  if (Array.isArray(value) && value.some(isObject)) {
    value.forEach((item, at) => {
      const name = isObject(item) && typeof item.name === "string" ? item.name : String(at);
      addLeaves(values, `${path}[${name}]`, item);
    });
    return;
  }
  if (isObject(value)) {
    for (const [key, inner] of Object.entries(value))
      addLeaves(values, path === "" ? key : `${path}.${key}`, inner);
    return;
  }
  values.set(path, Array.isArray(value) ? value.map(String).join(", ") : String(value));
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
