import { counted } from "@nodekeeper/api/wording";
import { addressOf } from "../../../address.ts";
import { bytesText, quantityText } from "../../../parts/kube-quantity.ts";
import { kindName, type PublishedObject } from "../objects/objects.ts";
import { holdsText, isDevice, shortName, typeText } from "../topology/zone-text.ts";
import { readZones, type Zone, type Zones } from "../topology/zones.ts";
import { membersOf } from "./members.ts";
import { AMOUNTS, amountsOf, resourceNode } from "./resource-nodes.ts";
import type { TreeNode } from "./tree-node.ts";

// Bounds what is built of an object, which may have 20,000 fields.
const MOST_NODES = 4_000;
const DEEPEST = 8;

/** Returns the key of an object's node: the name of its kind, with group and version if another kind has the name. */
export function objectKey(
  { object }: Pick<PublishedObject, "object">,
  objects: readonly Pick<PublishedObject, "object">[],
): string {
  const name = kindName(object);
  return objects.filter((other) => kindName(other.object) === name).length > 1 ? object : name;
}

interface ObjectNodeOptions {
  /** Default: the name of its kind. */
  key?: string;
  /** Problems of devices: see `unhealthyDevices`. Default: none. */
  unhealthy?: ReadonlyMap<string, string>;
}

/** Returns the tree node of a published object: its resources, properties, topology zones and all other fields. */
export function objectNode(
  { object: kind, plugins, lastError }: Pick<PublishedObject, "object" | "plugins" | "lastError">,
  content: unknown,
  { key = kindName(kind), unhealthy = new Map() }: ObjectNodeOptions = {},
): TreeNode {
  const label = kindName(kind);
  const more = [addressOf("resources", ["objects"], { object: kind }), "Fields and their plugins"] as const;
  const tree = new ObjectTree({ key, content, unhealthy, shared: { objectPlugins: plugins, more } });
  return {
    key,
    label,
    value: "",
    note: kind === label ? "" : kind,
    ...(lastError ? { tone: "bad" as const, value: "the last write failed" } : {}),
    children: tree.children,
    facts: [["Kind", kind], ...(lastError ? [["The last write failed", lastError] as const] : [])],
    plugins,
    more,
  };
}

interface ObjectTreeOptions {
  key: string;
  content: unknown;
  unhealthy: ReadonlyMap<string, string>;
  /** What all nodes have. */
  shared: Pick<TreeNode, "objectPlugins" | "more">;
}

class ObjectTree {
  readonly #key: string;
  readonly #shared: Pick<TreeNode, "objectPlugins" | "more">;
  readonly #unhealthy: ReadonlyMap<string, string>;
  readonly #zones: Zones;
  #left = MOST_NODES;
  #isCut = false;
  readonly children: readonly TreeNode[];

  constructor({ key, content, unhealthy, shared }: ObjectTreeOptions) {
    this.#key = key;
    this.#shared = shared;
    this.#unhealthy = unhealthy;
    this.#zones = readZones(content);
    // status, spec and metadata are not tree levels, because their names say nothing about the node.
    const children = ["status", "spec", "metadata"].flatMap((part) =>
      this.#fields(membersOf(membersOf(content)[part]), `${key}/${part}`, 1),
    );
    const { left } = this.#zones;
    this.children = [
      ...children,
      ...(left > 0 ? [this.#group(`${key}/zones left`, `${counted(left, "more zone")}, not shown`, [])] : []),
      ...(this.#isCut ? [this.#group(`${key}/fields left`, "More fields are in the tab Objects", [])] : []),
    ];
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
    if (name === "topologyZone" && path === `${this.#key}/status`)
      return this.#zones.zones.map((zone) => this.#zone(zone, path));
    if (name === "name" && path.endsWith("/metadata")) return [];
    if (name === "resources" && amountsOf(membersOf(value)))
      return this.#fields(membersOf(value), path, depth + 1);
    if (this.#left-- <= 0 || depth > DEEPEST) {
      this.#isCut = true;
      return [];
    }
    const key = `${path}/${name}`;
    if (Array.isArray(value)) return [this.#list(name, value, key, depth)];
    if (typeof value === "object" && value !== null)
      return [this.#group(key, name, this.#fields(membersOf(value), key, depth + 1))];
    return [this.#leaf(key, name, value, this.#fieldText(name, value, path))];
  }

  #list(name: string, items: readonly unknown[], key: string, depth: number): TreeNode {
    if (items.every((item) => typeof item !== "object"))
      return this.#leaf(key, name, items.join(", ") || "none");
    const children = items.flatMap((item, at) => {
      const fields = membersOf(item);
      const label = nameOf(fields) ?? String(at);
      const own = `${key}/${label}`;
      const value = fields.propertyQuantity ?? fields.propertyValues ?? fields.value ?? fields.effect;
      if (value !== undefined && this.#left-- > 0)
        return [this.#leaf(own, label, JSON.stringify(item), itemText(label, fields, value))];
      return this.#field(label, item, key, depth + 1);
    });
    return this.#group(key, titles[name] ?? name, unique(children));
  }

  #zone(zone: Zone, path: string): TreeNode {
    const key = `${path}${zone.key}`;
    const pods = [...new Set(zone.holders.map(({ namespace, name }) => `${namespace}/${name}`))];
    const device = isDevice(zone);
    const problem = this.#unhealthy.get(zone.name);
    return {
      ...this.#shared,
      key,
      label: `${typeText(zone.type)} ${shortName(zone.name)}`,
      value: device ? (problem !== undefined ? "unhealthy" : pods.length > 0 ? "held" : "free") : "",
      ...(problem === undefined ? {} : { tone: "bad" as const }),
      children: unique([
        ...(device ? [] : zone.resources.map(resourceNode(key, this.#shared))),
        ...zone.children.map((child) => this.#zone(child, path)),
      ]),
      facts: [
        ...(problem === undefined ? [] : [["Problem", problem] as const]),
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

  // Labels and annotations are texts.
  #fieldText(name: string, value: unknown, path: string): string | undefined {
    return path.startsWith(`${this.#key}/metadata`) ? undefined : bytesText(name, value);
  }

  #leaf(key: string, label: string, value: unknown, text = String(value)): TreeNode {
    const raw = String(value);
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

// A property of a CustomNodeResource has a quantity or values.
function itemText(label: string, fields: Readonly<Record<string, unknown>>, value: unknown): string {
  const text = fields.propertyQuantity === undefined ? bytesText(label, value) : quantityText(label, value);
  return text ?? (Array.isArray(value) ? value.join(", ") : String(value));
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
