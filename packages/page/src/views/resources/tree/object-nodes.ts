import { addressOf } from "../../../address.ts";
import { amountText, quantityText } from "../../../parts/kube-quantity.ts";
import { kindName, type PublishedObject } from "../objects/objects.ts";
import { holdsText, isDevice, shortName, typeText } from "../topology/zone-text.ts";
import { readZones, type Zone, type ZoneResource } from "../topology/zones.ts";
import type { TreeNode } from "./tree-node.ts";

// Bounds what is built of an object, which may have 20,000 fields.
const MOST_NODES = 4_000;
const DEEPEST = 8;

/** Returns the tree node of a published object: its resources, properties, topology zones and all other fields. */
export function objectNode(
  object: Pick<PublishedObject, "object" | "plugins" | "lastError">,
  content: unknown,
): TreeNode {
  const { object: kind, plugins, lastError } = object;
  const key = kindName(kind);
  const more = [addressOf("resources", ["objects"], { object: kind }), "Fields and their plugins"] as const;
  const tree = new ObjectTree(key, content, plugins, more);
  return {
    key,
    label: key,
    value: "",
    note: kind === key ? "" : kind,
    ...(lastError ? { tone: "bad" as const, value: "the last write failed" } : {}),
    children: tree.children,
    facts: [["Kind", kind], ...(lastError ? [["The last write failed", lastError] as const] : [])],
    plugins,
    more,
  };
}

class ObjectTree {
  readonly #shared: Pick<TreeNode, "plugins" | "more">;
  readonly #content: unknown;
  #left = MOST_NODES;
  readonly children: readonly TreeNode[];

  constructor(key: string, content: unknown, plugins: readonly string[], more: TreeNode["more"]) {
    this.#shared = { plugins, ...(more ? { more } : {}) };
    this.#content = content;
    // The parts of every object are no level of their own: their names say nothing about the node.
    this.children = ["status", "spec", "metadata"].flatMap((part) =>
      this.#fields(membersOf(membersOf(content)[part]), `${key}/${part}`, 1),
    );
  }

  #fields(fields: Readonly<Record<string, unknown>>, path: string, depth: number): TreeNode[] {
    const resources = amountsOf(fields);
    const others = Object.entries(fields).filter(([name]) => !(resources && AMOUNTS.has(name)));
    return [
      ...(resources
        ? [this.#group(`${path}/resources`, "Resources", resources.map(resourceNode(path, this.#shared)))]
        : []),
      ...others.flatMap(([name, value]) => this.#field(name, value, path, depth)),
    ];
  }

  #field(name: string, value: unknown, path: string, depth: number): TreeNode[] {
    if (name === "topologyZone") return readZones(this.#content).zones.map((zone) => this.#zone(zone, path));
    if (name === "name" && path.endsWith("/metadata")) return [];
    if (name === "resources" && amountsOf(membersOf(value)))
      return this.#fields(membersOf(value), path, depth + 1);
    if (this.#left-- <= 0 || depth > DEEPEST) return [];
    const key = `${path}/${name}`;
    if (Array.isArray(value)) return [this.#list(name, value, key, depth)];
    if (typeof value === "object" && value !== null)
      return [this.#group(key, name, this.#fields(membersOf(value), key, depth + 1))];
    return [this.#leaf(key, name, value, name)];
  }

  #list(name: string, items: readonly unknown[], key: string, depth: number): TreeNode {
    if (items.every((item) => typeof item !== "object"))
      return this.#leaf(key, name, items.join(", ") || "none", name);
    const children = items.flatMap((item, at) => {
      const fields = membersOf(item);
      const label = nameOf(fields) ?? String(at);
      const own = `${key}/${label}`;
      const value = fields.propertyQuantity ?? fields.propertyValues ?? fields.value ?? fields.effect;
      if (value !== undefined && this.#left-- > 0)
        return [
          this.#leaf(
            own,
            label,
            Array.isArray(value) ? value.join(", ") : value,
            label,
            JSON.stringify(item),
          ),
        ];
      return this.#field(label, item, key, depth + 1);
    });
    return this.#group(key, titles[name] ?? name, unique(children));
  }

  #zone(zone: Zone, path: string): TreeNode {
    const key = `${path}${zone.key}`;
    const pods = [...new Set(zone.holders.map(({ namespace, name }) => `${namespace}/${name}`))];
    const device = isDevice(zone);
    return {
      ...this.#shared,
      key,
      label: `${typeText(zone.type)} ${shortName(zone.name)}`,
      value: device ? (pods.length > 0 ? "held" : "free") : "",
      children: unique([
        ...(device ? [] : zone.resources.map(resourceNode(key, this.#shared))),
        ...zone.children.map((child) => this.#zone(child, path)),
      ]),
      facts: [
        ...zone.attributes.map(({ name, value }) => [name, value] as const),
        ...zone.holders.map(
          (holder) => [`${holder.namespace}/${holder.name} holds`, holdsText(holder)] as const,
        ),
      ],
      pods,
      ...(zone.type === "DRADevice"
        ? { more: [addressOf("resources", ["devices"], { device: zone.name }), "The device"] as const }
        : {}),
    };
  }

  #group(key: string, label: string, children: readonly TreeNode[]): TreeNode {
    return { ...this.#shared, key, label: titles[label] ?? label, value: "", children };
  }

  #leaf(key: string, label: string, value: unknown, resource: string, raw = String(value)): TreeNode {
    const text = quantityText(resource, value) ?? String(value);
    return {
      ...this.#shared,
      key,
      label,
      value: text,
      children: [],
      facts: text === raw ? [] : [["In the object", raw]],
    };
  }
}

const titles: Readonly<Record<string, string>> = {
  nodeResourceProperties: "Properties",
  labels: "Labels",
  annotations: "Annotations",
  taints: "Taints",
};
const AMOUNTS = new Set(["capacity", "allocatable"]);

/** The resources in `capacity` and `allocatable`. Undefined if there is neither. */
function amountsOf({
  capacity,
  allocatable,
}: Readonly<Record<string, unknown>>): ResourceTexts[] | undefined {
  const [all, usable] = [membersOf(capacity), membersOf(allocatable)];
  const names = new Set([...Object.keys(usable), ...Object.keys(all)]);
  if (names.size === 0) return undefined;
  return [...names].slice(0, MOST_NODES).map((name) => ({
    name,
    capacity: quantityText(name, all[name]),
    allocatable: quantityText(name, usable[name]),
    held: undefined,
    raw: { capacity: all[name], allocatable: usable[name] },
  }));
}

interface ResourceTexts {
  name: string;
  capacity: string | undefined;
  allocatable: string | undefined;
  held: string | undefined;
  raw: Readonly<Record<string, unknown>>;
}

function resourceNode(parent: string, shared: Pick<TreeNode, "plugins" | "more">) {
  return (resource: ResourceTexts | ZoneResource): TreeNode => {
    const { name, capacity, allocatable, held, raw } = "raw" in resource ? resource : textsOf(resource);
    const notes = [
      allocatable !== undefined && capacity !== undefined && capacity !== allocatable && `of ${capacity}`,
      held !== undefined && `${held} held by pods`,
    ];
    return {
      ...shared,
      key: `${parent}/${name}`,
      label: name,
      value: allocatable ?? capacity ?? "not a quantity",
      note: notes.filter(Boolean).join(", "),
      children: [],
      facts: [
        ...(allocatable === undefined ? [] : [["Allocatable", allocatable] as const]),
        ...(capacity === undefined ? [] : [["Capacity", capacity] as const]),
        ...(held === undefined ? [] : [["Held by pods", held] as const]),
        ...Object.entries(raw).flatMap(([what, value]) =>
          value === undefined ? [] : [[`${what} in the object`, String(value)] as const],
        ),
      ],
    };
  };
}

function textsOf({ name, capacity, allocatable, held }: ZoneResource): ResourceTexts {
  const text = (amount: number | undefined) => (amount === undefined ? undefined : amountText(name, amount));
  return {
    name,
    capacity: text(capacity),
    allocatable: text(allocatable),
    held: held > 0 ? text(held) : undefined,
    raw: {},
  };
}

function nameOf(fields: Readonly<Record<string, unknown>>): string | undefined {
  const name = fields.propertyName ?? fields.name ?? fields.key ?? fields.type;
  return typeof name === "string" && name !== "" ? name : undefined;
}

// Items of a list may have the same name.
function unique(nodes: readonly TreeNode[]): TreeNode[] {
  const seen = new Map<string, number>();
  return nodes.map((node) => {
    const times = (seen.get(node.key) ?? 0) + 1;
    seen.set(node.key, times);
    return times === 1 ? node : { ...node, key: `${node.key}#${times}`, children: [] };
  });
}

function membersOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value)
    ? (value as Record<string, unknown>)
    : {};
}
