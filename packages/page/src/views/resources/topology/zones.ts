import { parseQuantity } from "../../../parts/kube-quantity.ts";

/** A pod that holds resources of a zone. */
export interface Holder {
  namespace: string;
  name: string;
  uid: string;
  /** Amounts by resource. */
  holds: { resource: string; amount: number | undefined; text: string }[];
}

/** A resource of a zone. Amounts are undefined if the object has none or they are not quantities. */
export interface ZoneResource {
  name: string;
  capacity: number | undefined;
  allocatable: number | undefined;
  /** The sum of the amounts held by pods. */
  held: number;
}

/** A topology zone of the published CustomNodeResource, prepared for rendering. */
export interface Zone {
  /** Unique: the path of types and names. */
  key: string;
  /** "Socket", "Numa", "L3CacheGroup", "DRADevice", or a device type such as "GPU". */
  type: string;
  name: string;
  resources: ZoneResource[];
  attributes: { name: string; value: string }[];
  holders: Holder[];
  children: Zone[];
}

export interface Zones {
  zones: Zone[];
  /** Number of zones beyond the rendering limit. */
  left: number;
}

// Bounds what the page renders, regardless of what plugins report.
const MOST_ZONES = 2_000;
const DEEPEST = 8;

/**
 * Parses `status.topologyZone` of a CustomNodeResource. Anything that is not a zone is skipped, because any client may
 * have written the object.
 */
export function readZones(object: unknown): Zones {
  const budget = { zones: 0, left: 0 };
  const zones = zonesOf(member(member(object, "status"), "topologyZone"), "", 1, budget);
  return { zones, left: budget.left };
}

interface Budget {
  zones: number;
  left: number;
}

function zonesOf(value: unknown, path: string, depth: number, budget: Budget): Zone[] {
  return list(value).flatMap((item, at) => {
    const [type, name] = [text(member(item, "type")), text(member(item, "name"))];
    if (type === "" && name === "") return [];
    if (budget.zones >= MOST_ZONES || depth > DEEPEST) {
      budget.left++;
      return [];
    }
    budget.zones++;
    const key = `${path}/${type} ${name} ${at}`;
    const holders = list(member(item, "allocations")).flatMap(holderOf);
    return [
      {
        key,
        type,
        name,
        resources: resourcesOf(member(item, "resources"), holders),
        attributes: list(member(item, "attributes")).map((each) => ({
          name: text(member(each, "name")),
          value: text(member(each, "value")),
        })),
        holders,
        children: zonesOf(member(item, "children"), key, depth + 1, budget),
      },
    ];
  });
}

function resourcesOf(value: unknown, holders: readonly Holder[]): ZoneResource[] {
  const [capacity, allocatable] = [entries(member(value, "capacity")), entries(member(value, "allocatable"))];
  const held = new Map<string, number>();
  for (const { holds } of holders)
    for (const { resource, amount = 0 } of holds) held.set(resource, (held.get(resource) ?? 0) + amount);
  const names = new Set([...capacity.keys(), ...allocatable.keys()]);
  return [...names].map((name) => ({
    name,
    capacity: parseQuantity(capacity.get(name)),
    allocatable: parseQuantity(allocatable.get(name)),
    held: held.get(name) ?? 0,
  }));
}

// "namespace/name/uid", the format of katalyst.
function holderOf(value: unknown): Holder[] {
  const [namespace = "", name = "", ...uid] = text(member(value, "consumer")).split("/");
  if (name === "") return [];
  const holds = [...entries(member(value, "requests"))].map(([resource, amount]) => ({
    resource,
    amount: parseQuantity(amount),
    text: text(amount),
  }));
  return [{ namespace, name, uid: uid.join("/"), holds }];
}

function member(value: unknown, name: string): unknown {
  return typeof value === "object" && value !== null && Object.hasOwn(value, name)
    ? (value as Record<string, unknown>)[name]
    : undefined;
}

function list(value: unknown): unknown[] {
  return Array.isArray(value) ? value : [];
}

function entries(value: unknown): Map<string, unknown> {
  return new Map(typeof value === "object" && value !== null ? Object.entries(value) : []);
}

function text(value: unknown): string {
  if (typeof value === "string") return value;
  return typeof value === "number" ? String(value) : "";
}
